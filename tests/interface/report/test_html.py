"""The HTML report: complete, escaped, self-contained, the same for the same corpus. The report begins with
the verdict, draws wrong pairs over the others, and has the lexicon's entries."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from paraforge.base.errors import InputError
from paraforge.corpus.publication.datasets import LEXICON, Dataset
from paraforge.corpus.publication.manifest import read_manifest
from paraforge.corpus.statistics.counts import shared_out
from paraforge.interface.report.content import gather, lexicon_entries
from paraforge.interface.report.html import render, write_report
from paraforge.interface.report.parameters import ReportParameters
from paraforge.interface.report.svg import Bar, histogram
from tests.corpus.publication.test_verdict_words import NUMBER, drawn, published
from tests.corpus.selection.corpora import random_pairs, with_columns
from tests.corpus.selection.published import publish_pairs

OVERRIDE = "\u202e"  # what comes after it runs from right to left
EVIL = f'<script>alert("x")</script><img src=x onerror=alert(1)>&{{{{ 7*7 }}}}{OVERRIDE}'
VOID = {"wbr", "meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements of a page, and whether every one of them is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.not_isolated: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        # A title and each text of a picture are paragraphs of their own.
        if OVERRIDE in data and not {"bdi", "title", "text"} & {*self.open}:
            self.not_isolated.append(f"{self.open}: {data}")
        if self.open and self.open[-1] not in ("style",):
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
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project with corpora ``plain``, ``evil`` and ``empty``, metrics and curves."""
    root = tmp_path_factory.mktemp("project")
    publish_pairs(root / "plain", rows=400)
    publish_pairs(root / "evil", table=evil_pairs(), name=EVIL, licences={f"{EVIL} 0": EVIL})
    publish_pairs(root / "empty", rows=200, filters={"filters": [{"kind": "length", "minimum": 99}]})
    (root / "plots").mkdir()
    (root / "plots" / "nmt.csv").write_text(
        "update,epoch,train_loss,valid_loss,bleu\n100,1,5.1,5.3,\n200,1,4.0,4.4,10.5\n300,2,3.5,4.1,14.0\n"
    )
    (root / "plots" / "bands.csv").write_text("band,pairs\na,1\n")
    (root / "metrics").mkdir()
    (root / "metrics" / "nmt.json").write_text('{"bleu": 14.0, "chrf": 40.2}')
    (root / "metrics" / "translate.json").write_text('{"engine": "fake"}')
    (root / "metrics" / "embeddings.json").write_text(
        '{"sts": {"STS12": {"pearson": 61.234, "spearman": 60.0}}, "seconds": 3.0}'
    )
    (root / "metrics" / "statistics.json").write_text(
        '{"sources": {"news": {"pairs": 1234, "length": 13.3, "length_sd": 19.3, "parse_entropy": null}}}'
    )
    return root


def written(root: Path, name: str, **options: object) -> str:
    output = root / f"{name}.html"
    parameters = ReportParameters.model_validate(options)
    write_report(root / name / "corpus", output, parameters, root / "metrics", root / "plots")
    return output.read_text(encoding="utf-8")


def test_every_part_is_there(root: Path) -> None:
    html = written(root, "plain")
    page = Page(html)
    assert page.open == []
    ids = [attributes["id"] for tag, attributes in page.elements if tag == "section"]
    assert ids == [
        *("rows", "scores", "sources", "overlap", "length", "bands"),
        *("training", "results", "licences", "origin"),
    ]
    manifest = read_manifest(root / "plain" / "corpus")
    text = " ".join(" ".join(page.text).replace("\u200b", "").split())
    assert manifest.signature in text
    for reason, count in manifest.counts.rejected.items():
        assert re.search(rf"{reason}\s+{count:,}", text)
    assert "61.23" in text and "13.3 ± 19.3" in text and "A dry run." in text
    assert "CC-BY 2.0 FR" in text


def test_what_a_paraphraser_gives(root: Path, tmp_path: Path) -> None:
    rows = [
        {"asked": {"overlap": overlap, "similarity": similarity}, "overlap": x, "similarity": y}
        for overlap, similarity, x, y in [
            (None, None, 0.5, 0.8),
            *((1, None, 0.2, 0.6), (2, None, 0.4, 0.75), (3, None, 0.7, 0.9)),
            *((1, 3, 0.3, 0.7), (2, 3, None, None)),
        ]
    ]
    metrics = tmp_path / "metrics"
    metrics.mkdir()
    (metrics / "paraphraser.json").write_text(json.dumps({"curve": rows}), encoding="utf-8")
    write_report(root / "plain" / "corpus", tmp_path / "a.html", ReportParameters(), metrics)
    html = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert '<a href="#paraphraser">' in html
    section = html.partition('<section id="paraphraser"')[2].partition("</section>")[0]
    assert section.count("<circle") == section.count("<tr><td>") == 5
    assert "overlap from 0.6 to 0.9; with high similarity from 0.7 to 0.7" in section
    (metrics / "paraphraser.json").write_text('{"curve": []}', encoding="utf-8")
    write_report(root / "plain" / "corpus", tmp_path / "a.html", ReportParameters(), metrics)
    assert "paraphraser" not in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_links_lead_somewhere(root: Path) -> None:
    page = Page(written(root, "plain"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [str(attributes["href"]) for tag, attributes in page.elements if tag == "a"]
    assert targets
    assert all(target.removeprefix("#") in ids for target in targets)


def test_nothing_comes_from_elsewhere(root: Path) -> None:
    html = written(root, "plain")
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert not [a for _, a in page.elements if {"src", "onclick", "onload"} & a.keys()]
    assert "url(" not in html and "@import" not in html and "http://" not in html and "https://" not in html


def test_text_that_overrides_its_direction_changes_nothing_around_it(root: Path) -> None:
    page = Page(written(root, "evil"))
    assert page.not_isolated == []
    assert sum(OVERRIDE in text for text in page.text) > 30


def test_text_of_the_corpus_is_escaped(root: Path) -> None:
    html = written(root, "evil")
    page = Page(html)
    assert page.open == []
    assert not {"script", "img"} & {tag for tag, _ in page.elements}
    assert not [a for _, a in page.elements if "onerror" in a]
    assert "&lt;script&gt;" in html
    assert "{{ 7*7 }}" in "".join(page.text)


def test_pictures_are_named_and_have_tables(root: Path) -> None:
    page = Page(written(root, "plain"))
    pictures = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert len(pictures) >= 8
    assert all(
        attributes["role"] == "img" and len(str(attributes["aria-label"])) > 20 for attributes in pictures
    )
    assert page.count("desc") == len(pictures)
    assert page.count("table") >= 8
    regions = [a for _, a in page.elements if a.get("role") == "region"]
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in regions)


def test_the_same_corpus_gives_the_same_bytes(root: Path) -> None:
    assert written(root, "plain") == written(root, "plain")
    assert written(root, "plain", seed=2) != written(root, "plain")


def test_examples_are_of_their_band_and_as_many_as_its_share(root: Path) -> None:
    """Four a band on average: twenty of five bands, in proportion to their pairs."""
    content = write_report(root / "plain" / "corpus", root / "a.html", ReportParameters(examples=4))
    kept = [band.kept for band in content.bands]
    number = 4 * sum(band.pairs > 0 for band in content.bands)
    sizes = [band.kept or band.pairs for band in content.bands]
    for band, size in zip(content.bands, sizes, strict=True):
        low, high = (float(edge) for edge in re.findall(r"-?\d\.\d", band.name))
        assert all(low < pair["paraphrase_score"] <= high for pair in band.examples)
        assert abs(len(band.examples) - number * size / sum(sizes)) < 1
    assert sum(len(band.examples) for band in content.bands) == number
    assert max(kept) > 2 * min(kept)  # otherwise equal numbers would do


@pytest.mark.parametrize(
    ("number", "sizes", "shares"),
    [
        (10, [40, 40], [5, 5]),
        (10, [97, 2, 1], [10, 0, 0]),
        (10, [60, 25, 15], [6, 3, 1]),
        (3, [2, 0, 2], [2, 0, 1]),
        (9, [2, 1], [2, 1]),
        (4, [0, 0], [0, 0]),
        (0, [5], [0]),
    ],
)
def test_shares(number: int, sizes: list[int], shares: list[int]) -> None:
    assert shared_out(number, sizes) == shares


def test_refused_pairs_are_explained(root: Path) -> None:
    """Means over refused pairs that are near copies look too good to those who do not know why."""
    text = " ".join(" ".join(Page(written(root, "plain")).text).split())
    assert "more than 10 tokens on one side" in text
    assert re.search(r"Of the pairs that filters rejected, \d+\.\d %: ", text)


def test_examples_of_a_band_without_kept_pairs_are_refused_ones(root: Path, tmp_path: Path) -> None:
    filters = {"filters": [{"kind": "bounds", "score": "paraphrase_score", "minimum": 0.25, "maximum": 1.0}]}
    publish_pairs(tmp_path / "strict", rows=300, filters=filters)
    content = write_report(tmp_path / "strict" / "corpus", tmp_path / "a.html", ReportParameters())
    lowest = content.bands[-1]
    assert lowest.kept == 0 and lowest.examples_refused and lowest.examples
    assert (tmp_path / "a.html").read_text(encoding="utf-8").count("all rejected") == 1


def test_an_empty_corpus_has_a_report(root: Path) -> None:
    html = written(root, "empty")
    assert "The corpus is empty." in html
    assert Page(html).open == []


def test_many_sources_are_put_together(root: Path, tmp_path: Path) -> None:
    names = [f"source-{number % 30:02d}" for number in range(300)]
    publish_pairs(tmp_path / "many", table=with_columns(random_pairs(300, seed=5), source=names))
    write_report(tmp_path / "many" / "corpus", tmp_path / "many.html", ReportParameters(sources=5, reasons=2))
    html = (tmp_path / "many.html").read_text(encoding="utf-8")
    assert "other sources" in html and "other reasons" in html
    assert html.count("<h3><bdi>source-") == 5


def test_mistakes_are_explained(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        write_report(tmp_path / "nowhere", tmp_path / "a.html", ReportParameters())
    with pytest.raises(InputError, match="rejected pairs"):
        write_report(root / "plain" / "rejected", tmp_path / "a.html", ReportParameters())
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "nmt.json").write_text("{")
    with pytest.raises(InputError, match=r"nmt\.json:1: not JSON"):
        write_report(root / "plain" / "corpus", tmp_path / "a.html", ReportParameters(), tmp_path / "metrics")
    assert not (tmp_path / "a.html").exists()


def page(root: Path) -> str:
    return render(gather(root / "corpus", ReportParameters()))


def test_the_verdict_comes_first(tmp_path: Path) -> None:
    published(tmp_path, drawn(500, {"news": 0.0, "tatoeba": 0.6}), NUMBER)
    text = page(tmp_path)
    verdict = text.index("Paraphrase score: AUC")
    warning = text.index("The paraphrase score hardly tells good from mismatched pairs in news")
    assert text.index("</h1>") < verdict < warning < text.index("Where the rows went</h2>")
    table = text[text.index("What the scores are worth: ") :]
    cell = r"</td><td [^>]*>"
    row = rf"<bdi>tatoeba</bdi>{cell}500{cell}(0\.99|1\.00)"
    assert re.search(row, table)


def test_wrong_pairs_are_counted_as_they_weigh(tmp_path: Path) -> None:
    wrong = drawn(500, {"news": 0.6, "elsewhere": 0.6})
    published(tmp_path, wrong, NUMBER)
    scores = dict(gather(tmp_path / "corpus", ReportParameters()).scores)
    assert sum(bar.wrong for bar in scores["all sources"]) == pytest.approx(1_000)
    assert sum(bar.wrong for bar in scores["news"]) == pytest.approx(500)
    assert sum(bar.wrong for bar in scores["tatoeba"]) == 0
    values = wrong["paraphrase_score"].to_numpy()
    for bar in scores["all sources"]:
        inside = (values >= np.float32(bar.low)) & (values < np.float32(bar.high))
        assert bar.wrong == pytest.approx(inside.sum(), abs=2)


def test_a_corpus_without_wrong_pairs_has_no_third_colour(tmp_path: Path) -> None:
    published(tmp_path, None, NUMBER)
    text = page(tmp_path)
    assert 'class="wrong"' not in text and "What the scores are worth" not in text


def test_the_line_of_wrong_pairs_fits_the_picture() -> None:
    bars = [Bar(0.0, 0.1, 1, 0, 40.0), Bar(0.1, 0.2, 10, 5, 0.0)]
    drawing = str(histogram(bars, "x", "score"))
    points = re.search(r'd="M([^"]+)" class="wrong"', drawing)
    assert points is not None
    heights = [float(number) for number in points[1].split()[1::2]]
    assert min(heights) == 8 and max(heights) <= 160
    assert "most wrong pairs from 0 to 0.1" in drawing


@pytest.mark.parametrize(("pairs", "shown"), [(2, ["big / large"]), (3, ["ask / sondwom", "big / large"])])
def test_entries_of_one_or_two_pairs_are_not_the_best(pairs: int, shown: list[str]) -> None:
    rows = {
        "word": ["ask", "big", "large"],
        "paraphrase": ["sondwom", "large", "big"],
        "pairs": [pairs, 40, 40],
        "cross_pmi": [9.0, 5.0, 5.0],
        "ordinary_pmi": [0.0, 1.0, 1.0],
        "adjusted_pmi": [9.0, 4.0, 4.0],
    }
    table = pa.table(rows)
    with duckdb.connect() as connection:
        connection.register("lexicon", table)
        views = {"lexicon": Dataset(LEXICON, Path("lexicon"), [], table.num_rows, table.schema)}
        found = lexicon_entries(connection, views, 5)
    assert found is not None and found.entries == 3
    assert [f"{row['word']} / {row['paraphrase']}" for row in found.best] == shown
    assert [f"{row['word']} / {row['paraphrase']}" for row in found.worst] == shown[::-1]
