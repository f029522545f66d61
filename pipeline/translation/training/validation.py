"""Measures BLEU and chrF of a checkpoint on held-out rows, with sacreBLEU's defaults."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paraforge.base.errors import InputError
from paraforge.base.shards.store import read_parquet
from paraforge.base.text.units import load_processor
from paraforge.translation.decoding.translator import DecodingOptions, Placement
from paraforge.translation.engines import open_translator
from paraforge.translation.models.conversion import CHECKPOINT_FILE, convert_fairseq
from paraforge.translation.models.ctranslate2_library import load_ctranslate2
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

    if not hypotheses or len(hypotheses) != len(references):
        raise InputError(f"{len(hypotheses)} hypotheses for {len(references)} references cannot be scored")
    bleu, chrf = BLEU(), CHRF()
    return Scores(
        bleu=bleu.corpus_score(list(hypotheses), [list(references)]).score,
        chrf=chrf.corpus_score(list(hypotheses), [list(references)]).score,
        bleu_signature=bleu.get_signature().format(),
        chrf_signature=chrf.get_signature().format(),
    )


def translate_pieces(
    converted: Path,
    sources: Sequence[Sequence[str]],
    *,
    beam: int,
    threads: int,
    maximum_tokens: int,
) -> list[list[str]]:
    """Return the best hypothesis of each source as pieces, in float32 on the CPU.

    converted: CTranslate2 directory.
    sources: pieces of each sentence, with the model's special tokens. beam: beam size.
    threads: number of single-threaded replicas, which are faster than one with several threads.
    maximum_tokens: longest hypothesis.
    """
    translator = load_ctranslate2().Translator(
        str(converted), device="cpu", compute_type="float32", inter_threads=threads, intra_threads=1
    )
    results = translator.translate_batch(
        [list(source) for source in sources],
        beam_size=beam,
        max_batch_size=1024,
        batch_type="tokens",
        max_decoding_length=maximum_tokens,
    )
    return [result.hypotheses[0] for result in results]


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
    if parameters.architecture.kind != "lstm":
        convert_fairseq(checkpoint, directory, folder, *languages)
        found = translate_pieces(folder, pieces, beam=beam, threads=threads, maximum_tokens=longest)
        return score_hypotheses(load_processor(directory / "target.spm").decode(found), references)
    folder.mkdir(exist_ok=True)
    shutil.copyfile(checkpoint, folder / CHECKPOINT_FILE)
    for language in languages:
        shutil.copyfile(directory / f"dict.{language}.txt", folder / f"dict.{language}.txt")
    model = TranslationModel(
        path=folder,
        folders={"fairseq": folder},
        source_sentencepiece=directory / "source.spm",
        target_sentencepiece=directory / "target.spm",
        source_language=languages[0],
        target_language=languages[1],
        fingerprint="",
    )
    options = DecodingOptions(beam=beam, maximum_target_tokens=longest)
    translator = open_translator("fairseq", model, options, Placement("cpu", threads))
    results = translator.translate(sources)
    hypotheses = [result.hypotheses[0].text if result.hypotheses else "" for result in results]
    return score_hypotheses(hypotheses, references)
