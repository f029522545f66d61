"""CTranslate2, fairseq and Transformers as their documentation has them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.cells import Outcome, Task


def bare_ctranslate2(task: Task, batch_sentences: int = 0) -> Callable[[], Outcome]:
    """CTranslate2 as its documentation has it: one call over everything, SentencePiece around it."""
    import ctranslate2

    from paraforge.base.text.units import load_processor
    from paraforge.translation.models.model import open_model

    model = open_model(Path(task.model), "ctranslate2", verify=False)
    source, target = load_processor(model.source_sentencepiece), load_processor(model.target_sentencepiece)
    translator = ctranslate2.Translator(
        str(model.folder("ctranslate2")),
        device="cpu",
        compute_type=task.cell.compute_type,
        inter_threads=task.threads,
        intra_threads=1,
    )

    def run() -> Outcome:
        results = translator.translate_batch(
            source.encode(list(task.sources), out_type=str),
            beam_size=task.cell.beam,
            max_batch_size=batch_sentences or task.cell.batch_tokens or 512,
            batch_type="examples" if batch_sentences else "tokens",
            return_scores=True,
            use_vmap=task.cell.shortlist,
        )
        best = [result.hypotheses[0] for result in results]
        texts = [target.decode(tokens) for tokens in best]
        scores = [result.scores[0] for result in results]
        return Outcome(texts, scores, [len(tokens) + 1 for tokens in best])

    return run


def fairseq_generate(task: Task) -> Callable[[], Outcome]:
    """``fairseq-interactive`` in a process of its own: fairseq's own loop, batches and printing."""
    import math
    import re
    import tempfile

    from paraforge.base.text.units import load_processor
    from paraforge.translation.models.model import open_model

    model = open_model(Path(task.model), "fairseq", verify=False)
    folder = model.folder("fairseq")
    source, target = load_processor(model.source_sentencepiece), load_processor(model.target_sentencepiece)
    pieces = source.encode(list(task.sources), out_type=str)
    script = (
        "import sys; from paraforge.translation.models.fairseq_compat import import_fairseq; "
        "import_fairseq(); "
        "from fairseq_cli.interactive import cli_main; cli_main()"
    )
    arguments = [
        *(sys.executable, "-c", script, str(folder), "--path", str(folder / "checkpoint.pt")),
        *("--source-lang", model.source_language, "--target-lang", model.target_language),
        *("--beam", str(task.cell.beam), "--lenpen", "1"),
        *("--max-len-a", "0", "--max-len-b", "255", "--buffer-size", str(len(task.sources))),
        *("--max-tokens", str(task.cell.batch_tokens or 1024), "--num-workers", "0"),
        "--cpu",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": str(task.threads), "OMP_WAIT_POLICY": "passive"}

    def run() -> Outcome:
        with tempfile.TemporaryDirectory() as place:
            given = Path(place) / "sources.txt"
            given.write_text("".join(" ".join(one) + "\n" for one in pieces), encoding="utf-8", newline="\n")
            done = subprocess.run(
                [*arguments, "--input", str(given)],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
                cwd=Path(__file__).parents[1],
            )
        found: dict[int, tuple[float, list[str]]] = {}
        for match in re.finditer(r"^H-(\d+)\t(\S+)\t(.*)$", done.stdout, re.MULTILINE):
            found[int(match[1])] = (float(match[2]) * math.log(2), match[3].split(" "))
        rows = [found[number] for number in range(len(task.sources))]
        clock = re.search(r"translation time: ([0-9.]+)", done.stderr + done.stdout)
        return Outcome(
            [str(target.decode(tokens)) for _, tokens in rows],
            [score for score, _ in rows],
            [len(tokens) + 1 for _, tokens in rows],
            float(clock[1]) if clock else None,
        )

    return run


def transformers_generate(task: Task) -> Callable[[], Outcome]:
    """``generate`` of Transformers over the same weights as a Marian model, positions put in by hand."""
    import torch
    import transformers

    from benchmarks.marian import as_marian
    from paraforge.base.text.units import load_processor
    from paraforge.translation.models.model import open_model

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(task.threads)
    opened = open_model(Path(task.model), "ctranslate2", verify=False)
    model, vocabulary = as_marian(opened.folder("ctranslate2"))
    model = model.to(getattr(torch, task.cell.compute_type)).eval()
    source, target = load_processor(opened.source_sentencepiece), load_processor(opened.target_sentencepiece)
    pieces = [vocabulary.encode(one) for one in source.encode(list(task.sources), out_type=str)]
    size = 32

    def run() -> Outcome:
        order = sorted(range(len(pieces)), key=lambda number: -len(pieces[number]))
        texts, scores, tokens = [""] * len(pieces), [0.0] * len(pieces), [0] * len(pieces)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            longest = len(pieces[batch[0]])
            rows = [pieces[n] + [model.config.pad_token_id] * (longest - len(pieces[n])) for n in batch]
            ids = torch.tensor(rows)
            given = model.generate(
                ids,
                attention_mask=(ids != model.config.pad_token_id).long(),
                num_beams=task.cell.beam,
                max_new_tokens=256,
                early_stopping=True,
                length_penalty=1.0,
                do_sample=False,
                output_scores=task.cell.beam > 1,
                return_dict_in_generate=True,
            )
            for place, number in enumerate(batch):
                found = [t for t in given.sequences[place, 1:].tolist() if t != model.config.pad_token_id]
                body = [vocabulary.target[t] for t in found if t != vocabulary.end]
                texts[number], tokens[number] = str(target.decode(body)), len(body) + 1
                if task.cell.beam > 1:
                    scores[number] = float(given.sequences_scores[place])
                else:
                    scores[number] = float("nan")
        return Outcome(texts, scores, tokens)

    return run
