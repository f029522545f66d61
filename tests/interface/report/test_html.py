"""The HTML report: complete, escaped, self-contained, reproducible, and usable in a browser of any width."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraforge.base.errors import InputError
from paraforge.base.files import write_json
from paraforge.corpus.columns import LABELS, SCALES
from paraforge.corpus.publication.datasets import neighbors, open_published
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.scoring.wrong_pairs import WRONG_PAIRS_NAME
from paraforge.corpus.statistics.counts import Figures
from paraforge.interface.report.html import (
    _ticks,
    count_mismatched,
    count_pairs,
    counts_of,
    histogram,
    pictures,
    write_report,
)
from tests.corpus.publication.test_verdict_words import NUMBER, drawn, published
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs
from tests.interface.query.test_query import write_lexicon

OVERRIDE = "\u202e"  # what comes after it runs from right to left
EVIL = f'<script>alert("x")</script><img src=x onerror=alert(1)>&{{{{ 7*7 }}}}$style{OVERRIDE}'
VOID = {"wbr", "meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements of a page, and whether every one of them is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def evil_pairs() -> pa.Table:
    """Pairs whose source and text are markup."""
    pairs = random_pairs(300, seed=5)
    for name in ("reference", "translation", "source_text", "source"):
        texts = [
            None if text is None else f"{EVIL} {number % 3}" if name == "source" else f"{text} {EVIL}"
            for number, text in enumerate(pairs[name].to_pylist())
        ]
        pairs = with_columns(pairs, **{name: texts})
    return pairs


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with corpora ``plain``, ``evil`` and ``empty``, and metrics."""
    root = tmp_path_factory.mktemp("project")
    publish_pairs(root / "plain", rows=400)
    publish_pairs(root / "evil", table=evil_pairs(), name=EVIL, licenses={f"{EVIL} 0": EVIL})
    publish_pairs(root / "empty", rows=200, filters={"filters": [{"kind": "length", "minimum": 99}]})
    write_json(root / "metrics" / "nmt.json", {"bleu": 14.0, "chrf": 40.2})
    write_json(root / "metrics" / "translate.json", {"engine": "fake"})
    figures = {"pairs": 1234, "length": 13.3, "length_sd": 19.3, "parse_entropy": None}
    write_json(root / "metrics" / "statistics.json", {"sources": {"news": figures}})
    return root


def written(root: Path, name: str, **options: Any) -> str:
    output = root / f"{name}.html"
    write_report(root / name / "corpus", output, root / "metrics", **options)
    return output.read_text(encoding="utf-8")


def test_report_is_complete_and_self_contained(root: Path) -> None:
    html = written(root, "plain")
    assert html == written(root, "plain")
    page = Page(html)
    assert page.open == [] and "A dry run." in html and "BLEU 14.0, chrF 40.2 on held-out pairs" in html
    text = "".join(page.text)
    titles = "Scores, Counts, Score bands, Examples, Columns, Licenses, Sources, Parameters"
    assert [title for title in titles.split(", ") if title not in text] == []
    assert "13.3 ± 19.3" in text and "1,234" in text and "parse entropy" not in text
    assert page.count("svg") >= 5
    assert "<h1>A title</h1>" in written(root, "plain", title="A title")
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert not [a for _, a in page.elements if {"src", "onclick", "onload"} & a.keys()]
    assert not [one for one in ("url(", "@import", "http://", "https://") if one in html]
    empty = written(root, "empty")
    assert "The corpus is empty." in empty and Page(empty).open == []


def test_report_escapes_corpus_text(root: Path) -> None:
    html = written(root, "evil")
    page = Page(html)
    assert page.open == []
    assert not {"script", "img"} & {tag for tag, _ in page.elements}
    assert not [a for _, a in page.elements if "onerror" in a]
    assert "&lt;script&gt;" in html
    assert "{{ 7*7 }}$style" in "".join(page.text)


def test_report_escapes_card_and_parameters(tmp_path: Path) -> None:
    """Anyone can edit a card, and a prompt can contain markup."""
    publish_pairs(tmp_path, rows=100)
    corpus, markup = tmp_path / "corpus", "<img src=x onerror=alert(1)>"
    manifest = read_manifest(corpus)
    replace(manifest, steps={"translate": {"parameters": {"system": markup}}}).write(corpus)
    with (corpus / "_README.md").open("a", encoding="utf-8") as card:
        card.write(f"\n## More\n\n{markup}\n")
    write_report(corpus, tmp_path / "a.html")
    html = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<img" not in html and html.count("&lt;img src=x") == 2


def test_report_mistakes_are_explained(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        write_report(tmp_path / "nowhere", tmp_path / "a.html")
    with pytest.raises(InputError, match="rejected pairs"):
        write_report(root / "plain" / "rejected", tmp_path / "a.html")
    (tmp_path / "nmt.json").write_text("{")
    with pytest.raises(InputError, match=r"nmt\.json:1: not JSON"):
        write_report(root / "plain" / "corpus", tmp_path / "a.html", tmp_path)
    assert not (tmp_path / "a.html").exists()


def test_report_has_notes_per_pivot(root: Path, tmp_path: Path) -> None:
    for name, figures in {
        "translate": {"engine": "none", "pivots": {"cs": {"engine": "none"}, "de": {"engine": "fake"}}},
        "nmt": {"bleu": 14.0, "pivots": {"cs": {"bleu": 14.0}, "de": {"bleu": 3, "chrf": 9.0}}},
        "statistics": {"sources": {"edited": ["by hand"], "news": {"pairs": "many", "length": 2.0}}},
    }.items():
        write_json(tmp_path / f"{name}.json", figures)
    write_report(root / "plain" / "corpus", tmp_path / "a.html", tmp_path)
    html = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "A dry run." in html and "edited" not in html
    assert "model from cs reaches BLEU 14.0 on held" in html and "from de reaches BLEU 3.0, chrF 9.0" in html


def test_report_begins_with_verdict(tmp_path: Path) -> None:
    published(tmp_path, drawn(500, {"news": 0.0, "tatoeba": 0.6}), NUMBER)
    write_report(tmp_path / "corpus", tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    verdict = text.index("Paraphrase score: AUC")
    warning = text.index("The paraphrase score poorly tells good from mismatched pairs in news")
    titles = [text.index(title) for title in ("</h1>", "<h2>Scores</h2>", "<h2>Counts</h2>")]
    assert titles[0] < verdict < warning < titles[1] < titles[2]
    table = text[text.index("What the scores are worth") :]
    assert re.search(r"<td>tatoeba</td>\s*<td [^>]*>500</td>\s*<td [^>]*>(0\.99|1\.00)", table)
    assert 'class="wrong" d="M' in text


def test_bars_match_files(root: Path) -> None:
    corpus = root / "plain"
    views, _ = neighbors(open_published(corpus / "corpus"))
    kept, rejected = count_pairs(views)
    files = [sorted((corpus / name).glob("*.parquet")) for name in ("corpus", "rejected")]
    for column in ("paraphrase_score", "overlap_3", "reference_tokens"):
        scale = SCALES[column]
        expected = []
        for paths in files:
            values = pa.concat_tables([pq.read_table(path, columns=[column]) for path in paths])[column]
            numbers = values.drop_null().to_numpy().astype(np.float64)
            expected.append(np.bincount(scale.bin_of(numbers[~np.isnan(numbers)]), minlength=scale.bins))
        counts, edges = counts_of(column, kept, rejected)
        first = round((edges[0] - scale.low) / ((scale.high - scale.low) / scale.bins))
        for side, found in zip(expected, counts, strict=False):
            assert found.tolist() == side[first : first + len(found)].tolist()
        assert counts.sum() == sum(map(sum, expected)) and len(edges) == counts.shape[1] + 1


def test_last_bar_holds_longest_texts() -> None:
    counts = np.zeros(SCALES["reference_tokens"].bins, np.int64)
    counts[[59, 60, 61, -1]] = 1, 2, 3, 4
    found, edges = counts_of("reference_tokens", Figures(histograms={"reference_tokens": counts}), Figures())
    assert (found[0].tolist(), edges.tolist()) == ([1, 9], [59, 60, 61])


def test_charts_begin_with_score_and_lengths(root: Path) -> None:
    views, _ = neighbors(open_published(root / "plain" / "corpus"))
    names = [name for name, _ in pictures(root / "plain" / "corpus", views)]
    first = ["paraphrase_score", "reference_tokens", "translation_tokens"]
    assert names[:3] == [LABELS[name] for name in first] and len(names) == len(set(names)) > 5


def test_mismatched_pairs_are_weighted_in_charts(tmp_path: Path) -> None:
    pairs = with_columns(drawn(500, {"news": 0.6, "elsewhere": 0.6}), weight=[1.5, 0.5] * 500)
    made = pairs.slice(0, 9).set_column(5, "rule", pa.array(["number"] * 9))
    published(tmp_path, pa.concat_tables([pairs, made]), NUMBER)
    counted = count_mismatched(tmp_path / "corpus")
    bins = SCALES["paraphrase_score"].bin_of(pairs["paraphrase_score"].to_numpy().astype(np.float64))
    assert counted is not None and counted.sum() == 1_000
    assert counted[bins[0]] == sum(pairs["weight"].to_numpy()[bins == bins[0]])
    (tmp_path / "corpus" / WRONG_PAIRS_NAME).unlink()
    with pytest.raises(InputError, match=f"{WRONG_PAIRS_NAME}: missing, but listed in the manifest"):
        write_report(tmp_path / "corpus", tmp_path / "a.html")
    published(tmp_path / "without", None, NUMBER)
    assert count_mismatched(tmp_path / "without" / "corpus") is None


def test_bar_heights_are_proportional() -> None:
    """The plot reaches from y = 8 to y = 126, and the line of mismatched pairs has the highest point."""
    counts = np.array([[12.0, 10.0], [0.0, 10.0], [40.0, 0.0]])
    drawing = str(histogram(counts, np.array([0.0, 0.1, 0.2]), "x", "score"))
    wrong, kept, rejected = (
        re.search(rf'class="{kind}" d="([^"]+)"', drawing)[1] for kind in ("wrong", "kept", "rejected")
    )
    assert [float(number) for number in wrong.split()[1::2]] == [8.0, 8.0, 126.0, 126.0]
    assert re.findall(r"V([\d.]+)H", kept) == ["90.6", "96.5"]  # 126 - 118 * 12 / 40, 126 - 118 * 10 / 40
    assert re.findall(r"V([\d.]+)H", rejected) == ["67.0"]
    assert "22 kept and 10 rejected pairs; most, 20, from 0.1 to 0.2" in drawing
    # The unit is below the middle of the axis, which reaches from x = 40 to x = 312.
    labels = {
        text: float(x)
        for x, text in re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="middle">([^<]+)<', drawing)
    }
    assert labels["score"] == labels["0.1"] == (labels["0"] + labels["0.2"]) / 2


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e6))
def test_ticks_are_few_round_and_equally_spaced(low: float, size: float) -> None:
    ticks = _ticks(low, low + size)
    tolerance = size * 1e-6 + 1e-9
    assert 2 <= len(ticks) <= 6
    assert low - tolerance <= ticks[0] and ticks[-1] <= low + size + tolerance
    steps = np.diff(ticks)
    assert steps.max() - steps.min() <= tolerance
    assert re.fullmatch(r"(1|2|2\.5|5)", f"{steps[0] / 10 ** np.floor(np.log10(steps[0] * 1.000001)):.6g}")


@pytest.mark.parametrize(("pairs", "shown"), [(2, ["big / large"]), (3, ["ask / sondwom", "big / large"])])
def test_lexicon_examples_need_enough_pairs(root: Path, tmp_path: Path, pairs: int, shown: list[str]) -> None:
    names = ("word", "paraphrase", "adjusted_pmi", "cross_pmi", "ordinary_pmi", "pairs")
    rows = [("ask", "sondwom", 9.0, 2.0, 1.0, pairs)]
    rows += [(*words, 4.0, 3.0, None, 40) for words in (("big", "large"), ("large", "big"))]
    write_lexicon(tmp_path / "lexicon", [dict(zip(names, row, strict=True)) for row in rows])
    (tmp_path / "corpus").symlink_to(root / "plain" / "corpus")
    write_report(tmp_path / "corpus", tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "3 entries, by adjusted" in text
    best, worst = text[text.index("Best entries") :].split("Worst entries")
    for part, expected in ((best, shown), (worst, shown[::-1])):
        found = re.findall(r"<td>(\w+)</td>\s*<td>(\w+)</td>\s*<td style", part)
        assert [" / ".join(one) for one in found] == expected
    assert re.findall(r">([^<>]+)</td>", best)[-6:] == ["big", "large", "4.00", "3.00", "–", "40"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    publish_pairs(root, rows=400, name="A corpus with " + "a-very-long-name-" * 8)
    write_report(root / "corpus", root / "report.html")
    return root / "report.html"


def shown(chrome: Any, report: Path, width: int, scheme: str) -> Any:
    chrome.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    chrome.get(report.as_uri())
    return chrome


@pytest.mark.full
@pytest.mark.parametrize("width", [320, 390, 768, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_fits_and_follows_color_scheme(chrome: Any, report: Path, width: int, scheme: str) -> None:
    page = shown(chrome, report, width, scheme)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    ground = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground[4:-1].split(",")) / 3
    assert (brightness > 128) == (scheme == "light")


@pytest.mark.full
def test_report_makes_no_requests(chrome: Any, report: Path) -> None:
    page = shown(chrome, report, 1200, "light")
    assert page.get_log("browser") == []
    requests = [
        entry["message"]
        for entry in page.get_log("performance")
        if "Network.requestWillBeSent" in entry["message"]
    ]
    assert not [message for message in requests if '"url":"http' in message]
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
