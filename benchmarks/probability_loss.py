"""What chrF a worse translation loses, and how much less probable the float32 model finds it.

`paraforge translate` has no references for its check of int8: this says what its limit in nats is in chrF.

python -m benchmarks.probability_loss --model DIR --bitext FILE.tsv.gz
"""

from pathlib import Path

import pyarrow as pa
import typer

from benchmarks.bitext import read_bitext
from benchmarks.hardware import hardware
from benchmarks.results import append

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    model: Path = typer.Option(..., help="directory of the model"),
    bitext: list[Path] = typer.Option(..., help="TSV.gz: English, foreign"),
    sentences: int = typer.Option(1000, help="sentences to translate; 0 is all"),
    beam: int = typer.Option(12, help="of the translations that the others are compared with"),
    threads: int = typer.Option(2),
) -> None:
    """int8, and smaller beams, which are known to be worse, against float32 with the whole beam."""
    from sacrebleu.metrics.chrf import CHRF

    from paraforge.translation.decoding.translator import DecodingOptions, Placement
    from paraforge.translation.engines import ctranslate2
    from paraforge.translation.models.model import open_model
    from paraforge.translation.stage.calibration.loss import BOTH_WAYS, measure_loss

    references, sources = read_bitext(bitext, sentences)
    opened = open_model(model, ctranslate2.NAME, verify=False)

    def translator(kind: str, width: int) -> ctranslate2.CTranslate2Translator:
        options = DecodingOptions(beam=width, compute_type=kind)
        return ctranslate2.open_engine(opened, options, Placement("cpu", threads), {})

    def translations(kind: str, width: int) -> list[str]:
        return [result.hypotheses[0].text for result in translator(kind, width).translate(sources)]

    def chrf(texts: list[str]) -> float:
        return float(CHRF().corpus_score(texts, [references]).score)

    judge = translator("float32", beam)
    best = translations("float32", beam)
    own = judge.score(sources, best)
    print(
        f"{hardware()}; {len(sources)} sentences of {', '.join(path.name for path in bitext)}; float32, beam "
        f"{beam}: chrF {chrf(best):.2f}\n"
    )
    for kind, width in [("int8", beam), *(("float32", width) for width in (4, 2, 1) if width < beam)]:
        found = translations(kind, width)
        losses = [
            0.0 if one == other else mine - theirs
            for one, other, mine, theirs in zip(best, found, own, judge.score(sources, found), strict=True)
        ]
        both = pa.table([best, found, losses, [0] * len(best)], schema=BOTH_WAYS)
        loss = measure_loss(both, kind)
        append(
            "probability_loss",
            f"{kind}, beam {width}",
            {
                "chrf_loss": chrf(best) - chrf(found),
                "nats_per_token": loss.loss,
                "nats_upper_bound": loss.bound,
                "identical_percent": 100 * loss.identical,
            },
            compute_type=kind,
            beam=width,
            sentences=len(sources),
            model=model.name,
        )


if __name__ == "__main__":
    app()
