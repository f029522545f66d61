"""A corpus without columns of meaning opens everywhere; what needs one says so, and what to do."""

from pathlib import Path

import pytest
import yaml

from paraforge.base.errors import ParaforgeError
from paraforge.base.shards.store import ShardView
from paraforge.corpus.scoring.scorers.meaning import Meaning
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from paraforge.interface.browse.browser import open_browser
from paraforge.interface.report.html import write_report
from paraforge.interface.report.parameters import ReportParameters
from paraforge.products.lexicon.extraction import extract_lexicon
from paraforge.products.lexicon.parameters import LexiconParameters
from tests.corpus.selection.corpora import resources
from tests.corpus.selection.published import publish_pairs
from tests.here import run_command

MEANING = {column.name for column in Meaning.columns}
QUALITY = yaml.safe_load((Path(__file__).parents[3] / "configs" / "select" / "quality.yaml").read_text())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where such a corpus is published."""
    root = tmp_path_factory.mktemp("earlier")
    publish_pairs(root, rows=400)
    (root / "data").symlink_to(root)
    assert not MEANING & {*ShardView(root / "translated", root / "scored").column_names}
    return root


@pytest.mark.parametrize(
    "arguments",
    [
        ["summary", "PROJECT"],
        ["query", "CORPUS", "SELECT source, count(*) AS pairs FROM corpus GROUP BY source"],
        ["sample", "CORPUS", "-n", "5"],
        ["verify", "CORPUS"],
        ["triplets", "CORPUS", "OUT"],
    ],
    ids=" ".join,
)
def test_commands_work(arguments: list[str], root: Path, tmp_path: Path) -> None:
    places = {"PROJECT": root, "CORPUS": root / "corpus", "OUT": tmp_path / "out"}
    run_command(*(places.get(one, one) for one in arguments))


def test_a_condition_on_what_is_not_there_names_it(root: Path) -> None:
    for arguments in (
        ["query", "SELECT contradiction FROM corpus"],
        ["sample", "--where", "contradiction < 1"],
    ):
        with pytest.raises(ParaforgeError, match="contradiction") as raised:
            run_command(arguments[0], root / "corpus", *arguments[1:])
        assert raised.value.exit_code == 2


@pytest.mark.full
def test_browse_report_and_lexicon_open_it(root: Path, tmp_path: Path) -> None:
    with open_browser(root / "corpus") as browser:
        assert not MEANING & set(browser.scales)
        assert browser.count(browser.base).came > 0
    parameters = LexiconParameters(minimum_pairs=3)
    extract_lexicon([root / "corpus"], tmp_path / "lexicon", parameters, resources(tmp_path, 1))
    write_report(root / "corpus", tmp_path / "report.html", ReportParameters())
    assert "contradiction" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_selection_by_it_names_the_step_that_makes_it(root: Path, tmp_path: Path) -> None:
    inputs = [root / "translated", root / "scored"]
    with pytest.raises(ParaforgeError, match=r"no column 'contradiction'.*dvc repro") as raised:
        select(
            SelectParameters.model_validate(QUALITY["select"]), inputs, tmp_path / "s", resources(tmp_path, 1)
        )
    assert raised.value.exit_code == 2
