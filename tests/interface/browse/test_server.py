"""Requests of the browse page: counts, pairs, section, links, and hostile text."""

import html
import re
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

pytest.importorskip("flask")

from flask.testing import FlaskClient

from paraforge.corpus.publication.datasets import open_publication
from paraforge.corpus.scoring.wrong_pairs import store_wrong_pairs
from paraforge.corpus.selection.parameters import SelectParameters
from paraforge.corpus.selection.select import select
from paraforge.interface.browse.pairs import open_pairs
from paraforge.interface.browse.server import Browser, create_app, reopening
from tests.corpus.selection.corpora import resources, with_columns
from tests.corpus.selection.published import publish_pairs
from tests.interface.browse.conftest import NASTY, SIMPLE, browsing, hostile_pairs

LOWER = "/?paraphrase_score.min=-0.05&reference_tokens.max=&translation_tokens.max=12&flag.runaway=1"


@pytest.fixture
def client(browser: Browser) -> FlaskClient:
    return client_of(browser)


def client_of(browser: Browser) -> FlaskClient:
    return create_app(lambda: nullcontext(browser), "127.0.0.1").test_client()


def headline(page: str) -> tuple[int, int]:
    """Kept pairs, and those that came to selection."""
    ((kept, came),) = re.findall(r"<strong>([\d,]+)</strong> of ([\d,]+) pairs kept", page)
    return int(kept.replace(",", "")), int(came.replace(",", ""))


def publication(page: str) -> str:
    """What tells the script which corpus a page is of."""
    (found,) = re.findall(r'<form id="view" class="columns" data-publication="(\w+)">', page)
    return str(found)


def section(page: str) -> SelectParameters:
    """The section that the page shows, as a person copies it."""
    (found,) = re.findall(r'<pre id="section"[^>]*>(.*?)</pre>', page, re.S)
    return SelectParameters.model_validate(yaml.safe_load(html.unescape(found))["select"])


def test_first_view_shows_published_selection(client: FlaskClient, browser: Browser) -> None:
    page = client.get("/").text
    counts = browser.manifest.counts
    at_ingest = sum(counts.rejected[name] for name in ("duplicate", "blank_source"))
    assert headline(page) == (counts.kept, counts.rows_in - at_ingest - counts.failed.total())
    assert "The same as published." in page
    assert section(page) == browser.published


def test_rejected_pairs_can_be_kept_again(client: FlaskClient, browser: Browser, hostile: Path) -> None:
    page = client.get(LOWER).text
    inputs = [hostile / "translated", hostile / "scored"]
    report = select(section(page), inputs, hostile / "again", resources(hostile))
    assert headline(page)[0] == report.counts.kept > browser.manifest.counts.kept
    assert headline(client.get(LOWER.replace("/?", "/counts?")).text) == headline(page)
    ((entering, leaving),) = re.findall(r"(\d+) more and (\d+) fewer than published", page)
    entering, leaving = int(entering), int(leaving)
    assert entering - leaving == report.counts.kept - browser.manifest.counts.kept and leaving > 0


def test_browse_texts_are_escaped(client: FlaskClient) -> None:
    for address in ("/", LOWER, "/counts", "/?q=%3Cscript%3E", "/?reason=%3Cb%3E"):
        page = client.get(address).text
        assert set(re.findall(r"<script[^>]*>", page)) <= {'<script src="/static/browse.js" defer>'}
        assert "<b>" not in page and "<corpus>" not in page and "<i>" not in page
    page = client.get("/").text
    # Words that differ are marked, so the markup is cut into pieces.
    assert "&lt;<mark>script</mark>&gt;" in page and NASTY not in page
    assert "A &lt;corpus&gt;" in page and "news &lt;i&gt;&amp;" in page


def test_null_values_and_unknown_names(client: FlaskClient) -> None:
    for query in (
        *("paraphrase_score.min=x", "paraphrase_score.min=nan", "paraphrase_score.max=inf", "draw=0"),
        *("overlap_3.min=0.9&overlap_3.max=0.1", "draw=%D9%A1", f"draw={'9' * 5000}", "draw=9999999"),
        *("paraphrase_score.min=5", "flag.runaway=perhaps", "q=" + "x" * 201),
    ):
        for path in ("/", "/counts"):
            reply = client.get(f"{path}?{query}")
            assert reply.status_code == 400 and 'role="alert"' in reply.text
            assert "Value error" not in reply.text
    usual = headline(client.get("/").text)
    for query in ("unknown=1", "bounds=1", "line.min=3", "reason=none", "flag.x=1"):
        assert headline(client.get(f"/?{query}").text) == usual


def test_text_view_describes_selection(client: FlaskClient) -> None:
    usual, page = client.get("/").text, client.get("/?q=HOUSE").text
    came = [row for row in hostile_pairs().to_pylist() if row["rejected"] is None and row["failed"] is None]
    texts = [f"{row['reference']} {row['translation']}".lower() for row in came]
    assert headline(page)[1] == sum("house" in text for text in texts) > 0
    assert section(page) == section(usual)
    # Also after another text, and after none.
    assert headline(client.get("/?q=nothing+has+this").text) == (0, 0)
    assert headline(client.get("/").text)[1] == len(came)
    assert headline(client.get("/?q=house").text) == headline(page)


def test_failed_search_is_discarded(
    client: FlaskClient, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = headline(client.get("/?q=house").text)
    with monkeypatch.context() as patch:
        patch.setattr(browser.corpus, "files", [*browser.corpus.files[:1], Path("/none.parquet")])
        assert client.get("/?q=dog").status_code == 503
    assert headline(client.get("/?q=house").text) == found


def test_browse_source_counts_add_up(client: FlaskClient, browser: Browser) -> None:
    page = client.get("/").text
    cells = re.findall(r'<th scope="row">([^<]*)</th><td class="count">([\d,]+) of ([\d,]+)<', page)
    assert [html.unescape(name) for name, _, _ in cells] == browser.corpus.sources and len(cells) == 2
    sums = tuple(sum(int(cell[place].replace(",", "")) for cell in cells) for place in (1, 2))
    assert sums == headline(page)


def shown(page: str, side: str) -> list[str]:
    """Where the pairs of one side come from."""
    part = page.partition(f'<div class="side {side}">')[2].partition('<div class="side')[0]
    return re.findall(r"<summary>(?:<span[^>]*>[^<]*</span> )?(.*?)</summary>", part)


def test_shown_pairs_match_selection(client: FlaskClient) -> None:
    page = client.get("/").text
    assert len(shown(page, "kept")) == len(shown(page, "rejected")) == 10
    assert shown(client.get("/").text, "kept") == shown(page, "kept")
    assert shown(client.get("/?draw=2").text, "kept") != shown(page, "kept")
    reason = client.get("/?reason=length").text
    assert re.findall(r'class="why">(.*?)<', reason) == ["more than 10 tokens on one side"] * 10


def test_assets_exist_and_name_no_host(client: FlaskClient) -> None:
    page = client.get("/").text
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
        reply = client.get(address)
        assert reply.status_code == 200
        assert set(re.findall(r"https?://[^\s\"']+", reply.text)) <= {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"(?:src|href|action)=\"(?![/#])", page)


def test_page_begins_with_adequate_share(hostile: Path) -> None:
    datasets = open_publication(hostile / "corpus")
    manifest = datasets[0].manifest
    verdict = {"adequacy": {"share": 0.35, "low": 0.2, "high": 0.5}, "wrong_pairs": 0}
    datasets[0] = replace(datasets[0], manifest=replace(manifest, verdict=verdict))
    with open_pairs(datasets) as pairs:
        page = client_of(Browser(datasets, pairs)).get("/").text
    assert f"About 35% (20 to 50%) of the {manifest.counts.kept} kept pairs" in page


def test_browse_kept_pairs_only(hostile: Path) -> None:
    with browsing(hostile, with_rejected=False) as browser:
        page = client_of(browser).get("/?paraphrase_score.min=0.5").text
    kept, came = headline(page)
    assert 0 < kept < came == browser.manifest.counts.kept
    assert "you can only raise thresholds" in page


def test_browse_empty_selections(tmp_path: Path) -> None:
    columns = {"rejected": ["duplicate"] * 30, "failed": [None] * 30, "copy_rate": [0.5] * 30}
    table = with_columns(hostile_pairs(30), **columns)
    every: dict[str, Any] = {"required": [], "filters": []}
    for name, options in {
        "none": {"rows": 60, "filters": {"filters": [{"kind": "length", "minimum": 100, "maximum": 200}]}},
        "all": {"rows": 60, "filters": every},
        "duplicates": {"table": table, "filters": every},
    }.items():
        publish_pairs(tmp_path / name, **options)
        with browsing(tmp_path / name) as browser:
            assert ("copy_rate" in browser.scales) == (name != "duplicates")  # there it is always the same
            client = client_of(browser)
            page = client.get("/").text
            kept, came = headline(page)
            assert kept == (0 if name == "none" else came) and (came > 0) == (name != "duplicates")
            assert ("No pairs." in page) or name == "all"
            assert client.get("/?q=nothing+has+this").status_code == 200


def test_mismatched_pairs_are_third_color(tmp_path: Path) -> None:
    near = [{"kind": "bounds", "score": "paraphrase_score", "minimum": 0.2}]
    publish_pairs(tmp_path, rows=300, filters={"filters": near})
    wrong = pa.table(
        {
            "source": ["news"] * 5,
            "line": [1, 2, 3, 4, 5],
            "reference": [*["A wrong <reference>."] * 4, None],  # the last one is held out
            "translation": [*["Another."] * 4, None],
            "paraphrase_score": pa.array([0.1, 0.3, None, 0.9, 0.95], pa.float32()),
            "right_paraphrase_score": pa.array([0.9] * 5, pa.float32()),
            "reference_tokens": pa.array([4] * 5, pa.int32()),
            "weight": [1.0, 2.0, 1.0, 0.9, 0.1],
            "rule": pa.nulls(5, pa.string()),
        }
    )
    store_wrong_pairs(wrong, tmp_path / "corpus")
    with browsing(tmp_path) as browser:
        client = client_of(browser)
        page = client.get("/").text
        assert "60% of mismatched pairs pass" in page and page.count('class="wrong" d="M') == 1
        assert shown(page, "wrong") == ["news:4", "news:2"] and "A wrong &lt;" not in page
        for least, share in (("0.5", "20%"), ("0.96", "0%")):
            page = client.get(f"/counts?paraphrase_score.min={least}").text
            assert f"{share} of mismatched pairs pass" in page


def test_constant_scores_give_no_verdict(tmp_path: Path) -> None:
    publish_pairs(tmp_path, table=hostile_pairs(40).slice(0, 1), filters={"required": [], "filters": []})
    score = pa.array([0.1], pa.float32())
    wrong = {"source": ["news"], "line": [1], "reference": ["A."], "translation": ["B."], "weight": [1.0]}
    wrong |= {"paraphrase_score": score, "right_paraphrase_score": score, "rule": pa.nulls(1, pa.string())}
    store_wrong_pairs(pa.table(wrong), tmp_path / "corpus")
    with browsing(tmp_path) as browser:
        assert "100% of mismatched pairs pass" in client_of(browser).get("/").text


def test_corpus_connection_serves_one_request(tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=30)
    lent: list[str] = []
    with reopening(tmp_path / "corpus", False) as current:

        def borrow() -> None:
            with current():
                lent.append("second")

        second = threading.Thread(target=borrow)
        with current():
            second.start()
            second.join(0.1)
            lent.append("first")
        second.join()
    assert lent == ["first", "second"]


def test_open_page_continues_with_new_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open page survives other filters, another corpus, and a time without any corpus."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    publish_pairs(tmp_path, rows=300)
    with reopening(tmp_path / "corpus", True) as current:
        client = create_app(current, "127.0.0.1").test_client()
        before = headline(client.get("/").text)
        publications = {publication(client.get(path).text) for path in ("/", "/counts", LOWER)}
        for name in ("corpus", "rejected"):
            (tmp_path / name).rename(tmp_path / f"old-{name}")
        for path in ("/", "/counts"):
            reply = client.get(path)
            assert reply.status_code == 503 and "being rebuilt" in reply.text
        publish_pairs(tmp_path / "next", rows=400, filters=SIMPLE)
        for name in ("rejected", "corpus"):
            (tmp_path / "next" / name).rename(tmp_path / name)
        for path in ("/?flag.runaway=1", "/counts", "/?draw=2"):
            assert client.get(path).status_code == 200
        assert headline(client.get("/").text) != before
        # An open page loads itself again, as its handles are those of the other corpus.
        publications.add(publication(client.get("/counts").text))
        assert len(publications) == 2
        assert len(list(tmp_path.glob("paraforge-*/pairs.duckdb"))) == 1  # what was read before is gone
