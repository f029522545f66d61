"""Languages of the first rows: every swap of real bitext is found, nothing else is called one."""

from __future__ import annotations

from pathlib import Path

import pytest

from paraforge.intake.bitext.languages import language_problem, swapped_share
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.sources import problems
from paraforge.intake.sample_bitext import write_sample

pytest.importorskip("py3langid")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_sample(tmp_path_factory.mktemp("sample"), 2000)


def _problems(path: Path, columns: dict[str, int], **options: object) -> list[str]:
    source = {"name": "a", "format": "tsv", "path": str(path), "columns": columns}
    return problems(IngestParameters.model_validate({"sources": [source], **options}), "en")


def test_each_domain_is_right_and_its_swap_is_found(samples: list[Path]) -> None:
    for path in samples:
        assert _problems(path, {"source_text": 0, "reference": 1}) == [], path.name
        (problem,) = _problems(path, {"source_text": 1, "reference": 0})
        assert "swapped?" in problem and path.name in problem
        assert _problems(path, {"source_text": 1, "reference": 0}, check_languages=False) == []


def test_a_file_that_is_swapped_in_part_is_mixed(samples: list[Path]) -> None:
    rows = [line.split("\t")[:2] for line in samples[0].read_text(encoding="utf-8").splitlines()[:100]]
    source, reference = zip(*(row[::-1] if i % 2 else row for i, row in enumerate(rows)), strict=True)
    share = swapped_share(source, reference, "en")
    assert share is not None and 0.3 < share < 0.7
    assert "mixed" in str(language_problem(source, reference, "en"))


@pytest.mark.parametrize(
    ("source", "target", "language"),
    [
        (["pes", "dům", "voda"] * 100, ["dog", "house", "water"] * 100, "en"),  # a list of words
        (["The dog runs in the park."] * 5, ["Pes běží v parku u řeky."] * 5, "en"),  # a tiny file
        (["The dog runs in the park."] * 50, ["A dog is running in a park."] * 50, "en"),  # one language
        (["Pes běží v parku u řeky."] * 50, ["The dog runs in the park."] * 50, "eng_Latn"),  # unknown code
        ([], [], "en"),
    ],
)
def test_what_cannot_be_judged_is_no_problem(source: list[str], target: list[str], language: str) -> None:
    assert language_problem(source, target, language) is None
