"""DVC stage ``lexicon``: extracts the paraphrase lexicon and evaluates it on word similarity lists."""

from pathlib import Path

from paraforge.base.text.paths import expand
from paraforge.corpus.publication.datasets import open_held_out
from paraforge.papers.lexicon_evaluation import evaluate_lexicon, read_lists
from paraforge.products.lexicon.extraction import extract_lexicon
from paraforge.stages.common import Parameters, plain, run_stage
from paraforge.stages.metrics import write_metrics

OUTPUT = Path("data/lexicon")


def main(parameters: Parameters) -> None:
    """Extract data/lexicon from data/translated and data/scored, without the pairs in data/held_out."""
    lexicon = parameters.lexicon
    words, references = (
        [Path(expand(name)) for name in names] for names in (lexicon.word_lists, lexicon.reference_lexicons)
    )
    lists = read_lists(words, references)
    inputs = [Path("data/translated"), Path("data/scored")]
    held_out = Path("data/held_out")
    # The lexicon may be empty, because the next stages also work without entries.
    report = extract_lexicon(
        inputs, OUTPUT, lexicon, parameters.resources, allow_empty=True, held_out=open_held_out(held_out)
    )
    evaluation = evaluate_lexicon(OUTPUT, lists)
    write_metrics("lexicon", {**plain(report), "evaluation": evaluation})


if __name__ == "__main__":
    run_stage("lexicon", main)
