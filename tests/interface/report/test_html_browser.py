"""The report in a real browser: fits every width, follows the colour scheme, asks nothing of the network."""

from pathlib import Path
from typing import Any

import pytest

from paraforge.interface.report.html import write_report
from paraforge.interface.report.parameters import ReportParameters
from tests.corpus.publication.test_verdict_words import NUMBER, drawn, published
from tests.corpus.selection.published import publish_pairs

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    publish_pairs(root, rows=400, name="A corpus with " + "a-very-long-name-" * 8)
    write_report(root / "corpus", root / "report.html", ReportParameters())
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


@pytest.mark.parametrize("width", [320, 390, 768, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_follows_the_scheme(chrome: Any, report: Path, width: int, scheme: str) -> None:
    page = shown(chrome, report, width, scheme)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    ground = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground[4:-1].split(",")) / 3
    assert (brightness > 128) == (scheme == "light")


def test_it_asks_nothing_of_the_network(chrome: Any, report: Path) -> None:
    page = shown(chrome, report, 1200, "light")
    assert page.get_log("browser") == []
    requests = [
        entry["message"]
        for entry in page.get_log("performance")
        if "Network.requestWillBeSent" in entry["message"]
    ]
    assert not [message for message in requests if '"url":"http' in message]
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_the_flow_gives_way_to_the_table_on_a_phone(chrome: Any, report: Path) -> None:
    visible = "return document.querySelector('.flow').getBoundingClientRect().width > 0"
    assert shown(chrome, report, 1200, "light").execute_script(visible)
    assert not shown(chrome, report, 390, "light").execute_script(visible)


def test_histograms_of_sources_are_folded_on_a_phone(chrome: Any, report: Path) -> None:
    height = "return document.querySelector('.folded figure').getBoundingClientRect().height"
    assert shown(chrome, report, 1200, "light").execute_script(height) > 100
    page = shown(chrome, report, 390, "light")
    assert page.execute_script(height) == 0
    fold = page.find_element("css selector", "#each-source")
    fold.send_keys(" ")  # by the keyboard
    assert page.execute_script(height) > 100
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    label = page.find_element("css selector", "label[for=each-source]")
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", label)
    label.click()
    assert page.execute_script(height) == 0


def test_the_key_of_wrong_pairs_fits_a_phone(chrome: Any, tmp_path: Path) -> None:
    published(tmp_path, drawn(200, {"news": 0.7, "tatoeba": 0.7}), NUMBER)
    write_report(tmp_path / "corpus", tmp_path / "report.html", ReportParameters())
    page = shown(chrome, tmp_path / "report.html", 320, "light")
    assert "wrong pairs" in page.find_element("css selector", ".key.wrong").text
    assert page.execute_script("return document.documentElement.scrollWidth") <= 320


def test_no_table_of_scores_is_cut_off_on_a_phone(chrome: Any, tmp_path: Path) -> None:
    published(tmp_path, drawn(200, {"news": 0.7, "tatoeba": 0.7}), NUMBER)
    write_report(tmp_path / "corpus", tmp_path / "report.html", ReportParameters())
    page = shown(chrome, tmp_path / "report.html", 390, "light")
    hidden = page.execute_script(
        "return [...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth)"
        ".map((one) => one.getAttribute('aria-label'))"
    )
    assert hidden == []
    cell = page.find_element("css selector", ".stacked td[data-label=separation]")
    named = "return getComputedStyle(arguments[0], '::before').content"
    assert page.execute_script(named, cell) == '"separation"'
