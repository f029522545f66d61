"""Measures BLEU and chrF of a checkpoint on held-out rows, with sacreBLEU's defaults."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paraforge.base.shards.store import read_parquet
from paraforge.base.text.units import load_processor
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.conversion import CHECKPOINT_FILE, convert_fairseq
from paraforge.translation.models.model import TranslationModel
from paraforge.translation.training.parameters import NmtParameters


@dataclass(frozen=True)
class Scores:
    """Corpus scores, 0 to 100, with sacreBLEU's signatures."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def score_hypotheses(hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """Return BLEU and chrF of detokenized text against one reference each, with sacreBLEU's defaults."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    bleu, chrf = BLEU(), CHRF()
    return Scores(
        bleu=bleu.corpus_score(list(hypotheses), [list(references)]).score,
        chrf=chrf.corpus_score(list(hypotheses), [list(references)]).score,
        bleu_signature=bleu.get_signature().format(),
        chrf_signature=chrf.get_signature().format(),
    )


def evaluate(
    checkpoint: Path, directory: Path, parameters: NmtParameters, *, beam: int, threads: int
) -> Scores:
    """Translate and score the held-out rows with a checkpoint; the loss is of the same rows.

    A transformer is converted and runs in CTranslate2, as in production; an LSTM runs in fairseq.

    checkpoint: a weights-only checkpoint.
    directory: directory of the training, with dictionaries, subwords and held-out rows; files for the engine
        go to ``validation`` in it.
    parameters: parameters of the training; hypotheses are cut at ``maximum_tokens``.
    beam: beam size. threads: CPU threads.
    """
    languages = (parameters.source_language, parameters.target_language)
    held_out = read_parquet(directory / "held_out.parquet")
    sources, references = held_out["source_text"].to_pylist(), held_out["reference"].to_pylist()
    pieces = load_processor(directory / "source.spm").encode(sources, out_type=str)
    # An early model repeats itself up to the cap, so the cap should be low.
    longest = min(2 * max(map(len, pieces)) + 10, parameters.maximum_tokens)
    folder = directory / "validation"
    engine = "fairseq" if parameters.architecture.kind == "lstm" else "ctranslate2"
    if engine == "ctranslate2":
        convert_fairseq(checkpoint, directory, folder, *languages)
    else:
        folder.mkdir(exist_ok=True)
        shutil.copyfile(checkpoint, folder / CHECKPOINT_FILE)
        for language in languages:
            shutil.copyfile(directory / f"dict.{language}.txt", folder / f"dict.{language}.txt")
    model = TranslationModel(
        path=folder,
        folders={engine: folder},
        source_sentencepiece=directory / "source.spm",
        target_sentencepiece=directory / "target.spm",
        source_language=languages[0],
        target_language=languages[1],
        fingerprint="",
    )
    options = DecodingOptions(beam=beam, maximum_target_tokens=longest)
    translator = open_translator(engine, model, options, Placement("cpu", threads))
    results = translator.translate(sources)
    hypotheses = [result.hypotheses[0].text if result.hypotheses else "" for result in results]
    return score_hypotheses(hypotheses, references)
