"""A trained paraphraser from Python and from the command line."""

import gzip
import shlex
from pathlib import Path

import pytest

import paraforge
from paraforge.base.errors import InputError, ParaforgeError
from paraforge.products.paraphrasing.paraphraser import Paraphraser
from paraforge.translation.decoding.translator import DecodingOptions
from paraforge.translation.engines import open_translator
from tests.here import run_command
from tests.products.paraphrasing.test_stage import build

pytestmark = pytest.mark.full
TEXTS = ["the dog", "", "two of the dogs run ⟦overlap1⟧"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, published: Path) -> Path:
    """A tiny model, trained with templates from a file of trees."""
    root = tmp_path_factory.mktemp("paraphraser")
    from tests.products.paraphrasing.test_pairs import pairs_of

    sentences = sorted(
        {text for row in pairs_of(published) for text in (row["reference"], row["translation"])}
    )
    trees = ("(S (NP a) (VP b))", "(S (VP b))")
    lines = [f"{text}\t{trees[number % 2]}\n" for number, text in enumerate(sentences)]
    (root / "trees.tsv").write_text("".join([*lines, "Go.\t(S (VP go))\n"]), encoding="utf-8")
    build(
        published,
        root,
        templates={"parser": str(root / "trees.tsv")},
        training={"maximum_updates": 2},
        validation={"every_updates": 2, "average": 1},
    )
    return root


def test_paraphraser_from_python(root: Path) -> None:
    model = paraforge.load(root / "model")
    assert isinstance(model, Paraphraser)
    found = model.paraphrase(TEXTS, overlap="low", length="high", template="(S (VP))", nbest=3)
    assert [len(row) for row in found] == [3, 1, 3]
    # What is asked is what the engine reads, a blank line asks nothing, and nobody's text is a tag.
    sources = [
        "⟦overlap1⟧⟦length3⟧⟦(S⟧⟦VP⟧ the dog",
        "",
        "⟦overlap1⟧⟦length3⟧⟦(S⟧⟦VP⟧ two of the dogs run [overlap1]",
    ]
    options = DecodingOptions(beam=8, nbest=3, maximum_target_tokens=256)
    translator = open_translator("ctranslate2", root / "model", options)
    assert found == [[h.text for h in result.hypotheses] for result in translator.translate(sources)]
    assert found != model.paraphrase(TEXTS, nbest=3)
    assert [len(row) for row in model.paraphrase(["the dog", "a"], nbest=4, beam=2)] == [4, 4]


def test_paraphraser_from_command_line(root: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.tsv.gz"
    source.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    model = ["--model", str(root / "model")]
    run_command("paraphrase", source, output, *model, "--set", "similarity=high", "--nbest", "2")
    rows = [line.split("\t") for line in gzip.decompress(output.read_bytes()).decode().splitlines()]
    assert [row[:2] for row in rows] == [["1", "0"], ["1", "1"], ["2", "0"], ["3", "0"], ["3", "1"]]
    found = Paraphraser(root / "model").paraphrase(TEXTS, similarity="high", nbest=2)
    assert [row[3] for row in rows] == [" ".join(text.split()) for texts in found for text in texts]
    with pytest.raises(InputError, match="already exists"):
        run_command("paraphrase", source, output, *model)
    run_command("paraphrase", source, output, *model, "--force")
    piped = run_command("paraphrase", "-", "-", *model, "--set", "beam=2", stdin=b"the dog\n")
    assert piped.stdout.startswith("1\t0\t-")


def test_paraphrase_mistakes_are_one_line(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.tsv"
    source.write_text("the dog\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    model = str(root / "model")
    monkeypatch.setenv("PATH", str(tmp_path))
    of_model = {
        "--set 'template=(S (NP'": "the template '(S (NP' does not parse: a bracket is not closed",
        "--set 'template=(S (PP) (VP))'": "has not learned the template (S (PP) (VP)). Nearest: (S (",
        "--set overlap=-1.5": "overlap '-1.5': use low, medium, high, or a value from 0",
        "--set beam=.inf": "beam: inf: should be a finite",
        "--set baem=2": "baem: there is no such parameter; did you mean 'beam'?",
    }
    cases = {
        ("--model", str(tmp_path / "empty")): "not a paraphraser: there is no controls.json in it",
        ("--model", str(tmp_path / "absent")): "no such model",
        **{("--model", model, *shlex.split(options)): message for options, message in of_model.items()},
    }
    for arguments, message in cases.items():
        with pytest.raises(ParaforgeError) as raised:
            run_command("paraphrase", source, output, *arguments)
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)
        assert raised.value.exit_code == 2
        assert not output.exists()
    with pytest.raises(InputError, match=r"none\.txt"):
        run_command("paraphrase", tmp_path / "none.txt", output, "--model", model)
