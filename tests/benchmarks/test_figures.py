"""A figure in prose is that of the line of results/ that a comment behind it names.

    reaches 66.5 and 76.0 <!-- line: best; bare trigrams 512, softmax; sts2012, sts2014 --> on ...
    5.6 times <!-- line: engines; A; sentences_per_second; over; B --> as fast as ...
    45 <!-- line: whole; C; seconds / 60 --> minutes; 94 % <!-- line: signs_refused; D; any * 100 -->
    sums of words, 0.35 and 0.65 <!-- source: what it is from, if no line has it -->

The comment says what the last numbers before it are, as many as it names; with `minus` or `over` another row
of the same table (and other figures of it), their difference or quotient. A row is its name, and where
several have it `NAME | key = value`, `none` for one that has no such key. A source is that of the numbers
directly before it. In README, in what the experiments taught and in the verdicts on the papers every number
has one or the other, but for :data:`NO_FIGURES`.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.results import latest, read

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_PAPERS = yaml.safe_load((ROOT / "results" / "papers.yaml").read_text(encoding="utf-8"))
WHOLE = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/findings.md")} | {
    "papers.yaml, introduction": _PAPERS["introduction"],
    **{
        f"papers.yaml, {one['of']}: {one['claim'][:40]}": one["here"]
        for table in _PAPERS["tables"]
        for one in table.get("findings", [])
    },
}
"""Texts whose every figure has a comment."""
NO_FIGURES = {
    r"(?:19|20)\d\d": "years, also of a set",
    r"(?:Table|Eq\.) \d+": "places in a paper",
    r"\b[Ma] = [\d.]+|\b(?:M to|beam|batches of|an array of) \(?\d+(?:, \d+)?": "settings and shapes",
    r"(?:below|more than|at most|within|flags|±) ?[1345]?\d %|40 % of the sources|95 % interval": "limits",
    r"x 100\b|1 / p\b|points? of 5\b": "units",
    r"(?:\b(?:[Aa]fter|of|from|over|with|for)|\() ?(?:10 to )?[\d,]+ (?:pairs|rows|words)": "what was read",
    r"(?:at|up to) \d+ tokens|in [\d,]+ to [\d,]+ sentences": "what was looked at",
    r"600 captions, 400 news rows|1, 2 or 4 workers": "what was read, and by how many",
    r"[\d,]+ of 20,000 pairs kept": "tests/test_docs.py has it",
}
"""Numbers that are no figure, and what they are instead."""
_NO_FIGURE = re.compile("|".join(NO_FIGURES))
_COMMENT = re.compile(r"<!-- (line|source): (.*?) -->", re.S)
# Neither part of a name (STS-2012, sha256) nor a value of code.
_NUMBER = re.compile(r"(?<![\w`/=<>#.-])-?\d[\d,]*(?:\.\d+)?(?![\w`]|-\w|\.\d)")


def prose(text: str) -> str:
    """Without code and links' targets; tables and comments stay."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return re.sub(r"(?<=\])\([^)]*\)|`[^`]*`", "", text)


def claims(text: str) -> list[tuple[str, str, str]]:
    """The text before each comment since the last one in the same paragraph, its kind and what it says; text
    without a comment comes with an empty kind."""
    found = []
    for block in re.split(r"\n\s*\n|\n(?=\* |\| )", prose(text)):
        parts = _COMMENT.split(block)
        found += zip(parts[::3], [*parts[1::3], ""], [*parts[2::3], ""], strict=True)
    return found


def numbers_of(text: str) -> list[re.Match[str]]:
    """Those that may be figures."""
    return [*_NUMBER.finditer(_NO_FIGURE.sub("", re.sub(r"<!--.*?-->", "", text, flags=re.S)))]


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
    for before, kind, said in claims(text):
        if kind != "line":
            continue
        expected, numbers = values(said), [one[0] for one in numbers_of(before)]
        shown = numbers[-len(expected) :]
        for number, value in zip(shown, expected, strict=False):
            digits = len(number.partition(".")[2])
            if abs(float(number.replace(",", "")) - value) > 0.5 * 10**-digits + 1e-9:
                problems.append(f"{number} is {value:.4f}: {said}")
        if len(shown) < len(expected):
            problems.append(f"{len(numbers)} numbers before {said}")
    return problems


def unfounded(text: str, followed: str = "") -> list[str]:
    """Numbers of a text, or those that this follows, that no comment accounts for; a source does for those
    directly before it."""
    left = []
    for before, kind, said in claims(text):
        directly = re.search(rf"(?:{_NUMBER.pattern}(?:,|,? and|,? to|,? or| \|)?\s+)*\S*\s*$", before)
        assert directly
        counted = {"": 0, "source": len(numbers_of(directly[0]))}
        numbers = numbers_of(before)
        some = numbers[: len(numbers) - (len(values(said)) if kind == "line" else counted[kind])]
        left += [one[0] for one in some if re.match(followed, one.string[one.end() :])]
    return left


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_those_of_their_lines(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert wrong(text) == []
    if "<!-- generated by" not in text:
        assert unfounded(text, r"\s(?:%|points|times as)") == []


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_every_figure_has_a_line_or_a_source_and_would_be_missed(text: str) -> None:
    assert unfounded(text) == []
    for comment in _COMMENT.finditer(text):
        without = text[: comment.start()] + text[comment.end() :]
        assert wrong(without) or unfounded(without), comment[0]


def test_a_wrong_figure_a_wrong_row_and_a_figure_without_a_line_are_found() -> None:
    right = "Words have 61.0 and 60.5 <!-- line: best; bare words 300, softmax; sts2012, sts2013 -->."
    assert wrong(right) == [] == unfounded(right)
    assert wrong(right.replace("60.5", "60.6")) == ["60.6 is 60.4700: " + _COMMENT.findall(right)[0][1]]
    assert unfounded(right.replace("Words", "In 9 % of 0.4 words")) == ["9", "0.4"]
    assert unfounded(f"| words | score |\n|---|---:|\n| {right} | 0.4 |\n") == ["0.4"]
    assert wrong(right.replace("61.0 and", "")) != []
    with pytest.raises(AssertionError, match="no figure sts1999"):
        wrong(right.replace("sts2012", "sts1999"))
    with pytest.raises(AssertionError, match="0 lines of best are bare words 301, softmax"):
        wrong(right.replace("300", "301"))
    longer = "5.6 <!-- line: engines; ctranslate2 int8, beam 12, batch 128; sentences_per_second; over; "
    assert wrong(longer + "fairseq-generate float32, beam 12, batch own -->") == []
