"""A figure in prose is that of the line of results/ that a comment behind it names.

    reaches 66.5 and 76.0 <!-- line: best; bare trigrams 512, softmax; sts2012, sts2014 --> on ...
    5.6 times <!-- line: engines; A; sentences_per_second; over; B --> as fast as ...
    45 <!-- line: whole; C; seconds / 60 --> minutes; 94 % <!-- line: signs_refused; D; any * 100 -->
    sums of words, 0.35 and 0.65 <!-- source: what it is from, if no line has it -->

The comment says what the last numbers before it are, as many as it names; with `minus` or `over` another row
of the same table (and other figures of it), their difference or quotient. A row is its name, and where
several have it `NAME | key = value`, `none` for one that has no such key.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.results import latest, read

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "docs/findings.md", "docs/embeddings.md", "docs/papers.md")]
WHOLE = {"README.md", "findings.md"}
"""Pages whose every figure has a comment."""
_COMMENT = re.compile(r"<!-- (line|source): (.*?) -->", re.S)
# Neither part of a name (STS-2012, sha256) nor a value of code.
_NUMBER = re.compile(r"(?<![\w`/=<>#.-])-?\d[\d,]*(?:\.\d+)?(?![\w`]|-\w|\.\d)")


def prose(text: str) -> str:
    """Without code and links' targets; tables and comments stay."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return re.sub(r"(?<=\])\([^)]*\)|`[^`]*`", "", text)


def claims(text: str) -> list[tuple[list[str], str, str]]:
    """The numbers before each comment since the last one in the same paragraph, its kind and what it says;
    numbers without a comment come with an empty kind."""
    found = []
    for block in re.split(r"\n\s*\n|\n(?=\* |\| )", prose(text)):
        parts = _COMMENT.split(block)
        for numbers, kind, said in zip(parts[::3], [*parts[1::3], ""], [*parts[2::3], ""], strict=True):
            found.append((_NUMBER.findall(re.sub(r"<!--.*?-->", "", numbers, flags=re.S)), kind, said))
    return found


def line(task: str, row: str) -> dict[str, float]:
    """Figures of the newest line of a row; the test fails where there is none, or several."""
    name, *conditions = (part.strip() for part in row.split(" | "))
    wanted = [tuple(part.strip() for part in one.split("=", 1)) for one in conditions]
    lines = [
        one
        for one in latest(read(ROOT / "results" / f"{task}.jsonl"))
        if one.configuration["name"] == name
        and all(str(one.configuration.get(key, "none")) == value for key, value in wanted)
    ]
    assert len(lines) == 1, f"{len(lines)} lines of {task} are {row}"
    spread = lines[0].deviations or {}
    return lines[0].figures | {f"deviation of {name}": value for name, value in spread.items()}


def values(said: str) -> list[float]:
    """The figures that a comment names."""
    task, row, figures, *rest = (part.strip() for part in said.split(";"))
    found = [_figure(line(task, row), name.strip()) for name in figures.split(",")]
    if rest:
        operation, other, others_names = [*rest, figures][:3]
        known = {"minus": lambda a, b: a - b, "over": lambda a, b: a / b}[operation]
        others = line(task, other)
        found = [
            known(one, _figure(others, name.strip()))
            for one, name in zip(found, others_names.split(","), strict=True)
        ]
    return found


def _figure(figures: dict[str, Any], name: str) -> float:
    name, operator, factor = [*re.split(r" ([*/]) ", name), "*", "1"][:3]
    assert name in figures, f"no figure {name} among {', '.join(figures)}"
    return float(figures[name]) * float(factor) if operator == "*" else float(figures[name]) / float(factor)


def wrong(text: str) -> list[str]:
    """What the comments of a text say otherwise than its numbers."""
    problems = []
    for numbers, kind, said in claims(text):
        if kind != "line":
            continue
        expected = values(said)
        shown = numbers[-len(expected) :]
        for number, value in zip(shown, expected, strict=False):
            digits = len(number.partition(".")[2])
            if abs(float(number.replace(",", "")) - value) > 0.5 * 10**-digits + 1e-9:
                problems.append(f"{number} is {value:.4f}: {said}")
        if len(shown) < len(expected):
            problems.append(f"{len(numbers)} numbers before {said}")
    return problems


def unfounded(text: str) -> list[str]:
    """Decimals and percentages of a text that no comment accounts for."""
    left = []
    for numbers, kind, said in claims(text):
        if kind != "source":
            counted = len(values(said)) if kind else 0
            left += [number for number in numbers[: len(numbers) - counted] if "." in number]
    return left


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_those_of_their_lines(page: Path) -> None:
    assert wrong(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name in WHOLE], ids=lambda page: page.name)
def test_every_decimal_has_a_line_or_a_source(page: Path) -> None:
    assert unfounded(page.read_text(encoding="utf-8")) == []


def test_a_wrong_figure_a_wrong_row_and_a_figure_without_a_line_are_found() -> None:
    right = "Words have 61.0 and 60.5 <!-- line: best; bare words 300, softmax; sts2012, sts2013 -->."
    assert wrong(right) == [] == unfounded(right)
    assert wrong(right.replace("60.5", "60.6")) == ["60.6 is 60.4700: " + _COMMENT.findall(right)[0][1]]
    assert unfounded(right.replace("Words", "Of 0.4 words")) == ["0.4"]
    assert unfounded(f"| words | score |\n|---|---:|\n| {right} | 0.4 |\n") == ["0.4"]
    assert wrong(right.replace("61.0 and", "")) != []
    with pytest.raises(AssertionError, match="no figure sts1999"):
        wrong(right.replace("sts2012", "sts1999"))
    with pytest.raises(AssertionError, match="0 lines of best are bare words 301, softmax"):
        wrong(right.replace("300", "301"))
    longer = "5.6 <!-- line: engines; ctranslate2 int8, beam 12, batch 128; sentences_per_second; over; "
    assert wrong(longer + "fairseq-generate float32, beam 12, batch own -->") == []
