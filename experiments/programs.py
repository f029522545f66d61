"""Commands that the tables need in addition to the command line: ``python -m experiments.programs PROGRAM
...``.

SIF (Arora 2017), counter-fitting (Mrksic 2016), decoders on running text (Zhelezniak 2018) and the expansion
of their vocabulary; evaluation on transfer tasks, of decoders, lexical baselines and lexicons. Outputs are
replaced.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.command_line import start
from paraforge.base.devices import chosen_device
from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.files import write_json
from paraforge.base.logs import configure_logging, counted
from paraforge.base.shards.resources import Resources
from paraforge.interface.cli.settings import with_settings
from paraforge.papers.evaluation import open_model

if TYPE_CHECKING:
    from paraforge.base.word_vectors.vectors import WordVectors
    from paraforge.papers.transfer.fine_tuning import Variant

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_NONE: list[Path] = []


def words_of(name: Path) -> WordVectors:
    """Open the word vectors of a file, a table, or a model that averages them. Raises InputError if it has
    none."""
    words = open_model(str(name)).words
    if words is None:
        raise InputError("not the mean of its words' vectors", name)
    return words


@app.command()
def sif(
    vectors: Path,
    output: Path,
    counts: Path | None = None,
    fit: list[Path] = _NONE,
    a: float = 1e-3,
    components: Annotated[int, typer.Option(min=0)] = 1,
    weights: str = "sif",
) -> None:
    """Fit averages weighted by smooth inverse frequency, without their common component."""
    from paraforge.embeddings.evaluation.averages import describe_average, fit_sif, save_sif

    if not {"sif": counts, "idf": fit, "none": True}.get(weights):
        raise ConfigurationError([f"--weights {weights}: use sif with --counts, idf with --fit, or none"])
    model, about = fit_sif(words_of(vectors), counts, fit, weights, a, components)
    save_sif(model, output, about)
    typer.echo(f"{output}: {describe_average(model)}")


@app.command()
def fit_words(
    vectors: Path,
    output: Path,
    synonyms: list[Path] = _NONE,
    antonyms: list[Path] = _NONE,
    without: list[Path] = _NONE,
) -> None:
    """Counter-fit word vectors: move synonyms together and antonyms apart, except for the pairs of some
    lists."""
    from paraforge.embeddings.evaluation.word_lists import read_similarity_lists
    from paraforge.papers.counter_fitting import counter_fit, read_word_pairs

    if not synonyms and not antonyms:
        raise ConfigurationError(["give --synonyms, --antonyms or both"])
    left_out = {(min(pair), max(pair)) for judged in read_similarity_lists(without) for pair in judged.pairs}
    near, apart = read_word_pairs(synonyms) - left_out, read_word_pairs(antonyms) - left_out
    fitted, used = counter_fit(words_of(vectors), near - apart, apart)
    fitted.write_text(output, header=True)
    typer.echo(
        f"{output}: {counted(used['synonyms'], 'pair')} of synonyms, {used['antonyms']:,} of antonyms",
        err=True,
    )


@app.command()
def expand(model: Path, vectors: Path, output: Path) -> None:
    """Add words to trained decoders by a linear map of word vectors (Kiros et al. 2015)."""
    from paraforge.papers.unrolling.model import DecoderModel
    from paraforge.papers.unrolling.model import expand as expanded

    larger = expanded(DecoderModel.open(model), words_of(vectors))
    larger.save(output)
    counts = larger.about["expanded"]
    typer.echo(f"{output}: {counted(counts['words'], 'word')} more, by a map fitted on {counts['shared']:,}")


@app.command()
def train_decoders(
    sentences: Path,
    output: Path,
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE"),
    without: Annotated[list[Path] | None, typer.Option(help="STS sets whose sentences are left out")] = None,
    device: str = "auto",
    threads: Annotated[int, typer.Option(min=0)] = 0,
    checkpoint_seconds: float = 300.0,
    work: Path = Path("work"),
) -> None:
    """Train an encoder with decoders that predict a sentence's neighbors in running text."""
    from paraforge.papers.unrolling.parameters import DecodersParameters
    from paraforge.papers.unrolling.train_decoders import train_decoders as train

    configure_logging("train-decoders")
    report = train(
        with_settings(DecodersParameters, settings, DecodersParameters().model_dump()),
        sentences,
        output,
        Resources(threads=threads, work=work),
        held_out=without or [],
        device=chosen_device(device),
        checkpoint_seconds=checkpoint_seconds,
    )
    typer.echo(
        f"{report['signature']}\n{counted(report['seen'], 'sentence')} seen, "
        f"{counted(report['updates'], 'update')}, loss {report['history'][-1]['loss']:.4f} nats a word, "
        f"{report['sentences_per_second']:,.0f} sentences/s"
    )


@app.command()
def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            help="as for paraforge evaluate; tfidf, tfidf-trigrams, jaccard, chrf, bleu, meteor; "
            "decoders, with @context, @unrolled:3, @mean:3 behind them"
        ),
    ],
    sts: Annotated[list[Path] | None, typer.Option(help="file or directory of scored sentence pairs")] = None,
    similarity: Annotated[list[Path] | None, typer.Option(help="word pairs with judgments")] = None,
    transfer: Annotated[list[Path] | None, typer.Option(help="directory of transfer tasks")] = None,
    task: Annotated[list[str] | None, typer.Option(help="only this task, e.g. SICK-R, 'SST binary'")] = None,
    folds: Annotated[int, typer.Option(min=2, help="cross-validation folds for MR, CR, SUBJ, MPQA")] = 10,
    fine_tune: Annotated[bool, typer.Option("--fine-tune", help="train a copy for each task, too")] = False,
    fine_tune_from: Annotated[list[str] | None, typer.Option(help="trained, random, or both")] = None,
    fine_tune_penalty: Annotated[list[float] | None, typer.Option(min=0, help="L2 penalties to try")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE,... of --fine-tune")] = None,
    by_length: Annotated[bool, typer.Option("--by-length", help="STS by sentence length, too")] = False,
    baseline: Annotated[list[str] | None, typer.Option(help="model to compare with")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file of all figures, JSON")] = None,
    seed: Annotated[int, typer.Option(min=0, max=1 << 31, help="of the transfer tasks")] = 1,
    device: str = "auto",
    force: Annotated[bool, typer.Option("--force", help="not needed: OUTPUT is replaced")] = False,
) -> None:
    """Evaluate a model on STS, word similarity and transfer tasks. README.md lists the files.

    With --fine-tune a copy of the encoder is trained end to end for each task (Wieting et al. 2016, 4.4).
    """
    from paraforge.papers.evaluation import evaluate_for_papers

    result = evaluate_for_papers(
        model,
        partial(open_model, device=device),
        sts=sts or [],
        word_lists=similarity or [],
        transfer=transfer or [],
        task_names=task or [],
        variants=_variants(fine_tune, fine_tune_from, fine_tune_penalty, settings),
        folds=folds,
        lengths=by_length,
        beside=baseline or [],
        seed=seed,
    )
    if output is not None:
        write_json(output, result.as_json())
    typer.echo("\n".join(result.lines()))


def _variants(
    wanted: bool, starts: list[str] | None, penalties: list[float] | None, settings: list[str] | None
) -> list[Variant]:
    if not wanted:
        if starts or penalties or settings:
            raise ConfigurationError(["--fine-tune-from, --fine-tune-penalty and --set need --fine-tune"])
        return []
    from paraforge.papers.transfer.fine_tuning import make_variants

    grid = {}
    for setting in settings or []:
        key, equals, values = setting.partition("=")
        if not equals or not key or not values:
            raise ConfigurationError([f"--set {setting}: KEY=VALUE,... is expected, e.g. epochs=20"])
        grid[key] = values.split(",")
    return make_variants(starts or ["trained"], penalties or [], grid)


@app.command()
def lexicon_evaluate(
    lexicon: Annotated[Path, typer.Argument(help="directory of the lexicon")],
    words: Annotated[list[Path], typer.Option("--words", "-w", help="similarity judgments")],
    ppdb: Annotated[
        list[Path] | None, typer.Option("--ppdb", help="PPDB file or pair list to evaluate as well")
    ] = None,
    minimum_pairs: int = 1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file of the same figures")] = None,
) -> None:
    """Correlate a lexicon's scores with human judgments and PPDB's scores (ParaNMT-50M, Table 13), as JSON.

    SCORE_LIST: Spearman x 100 of a score with the judgments of a list, or with PPDB's scores.
    LIST_found: pairs of the list that are entries.
    """
    from paraforge.papers.lexicon_evaluation import SCORES, evaluate_lexicon, read_lists, shared_correlations
    from paraforge.products.lexicon.lookup import Lexicon

    def short(name: str) -> str:
        parts = re.split(r"\W+", name.lower())
        return parts[0] if begins.count(parts[0]) == 1 else "_".join(parts)

    lists = read_lists(words, ppdb or [])
    names = [listed.name for listed in lists.judgments] + [listed.name for listed in lists.references]
    begins = [re.split(r"\W+", name.lower())[0] for name in names]
    figures: dict[str, float | None] = {}
    for name, row in evaluate_lexicon(lexicon, lists, minimum_pairs).items():
        figures |= {f"{short(name)}_found": row["found"]}
        figures |= {f"{score}_{short(name)}": row[score] for score in SCORES}
        for reference in lists.references:
            figures[f"{short(reference.name)}_{short(name)}"] = row[reference.name]["spearman"]
    for reference in lists.references:
        if reference.scored:
            found = shared_correlations(Lexicon(lexicon), reference)
            figures |= {f"{score}_{short(reference.name)}": rho for score, rho in found.items()}
    if output is not None:
        write_json(output, {"figures": figures})
    typer.echo(json.dumps(figures, indent=2))


if __name__ == "__main__":
    start(app)
