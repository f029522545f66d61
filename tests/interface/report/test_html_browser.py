"""The report in a real browser: fits every width, follows the colour scheme, asks nothing of the network."""

from pathlib import Path
from typing import Any

import pytest

from paraforge.interface.report.html import write_report
from paraforge.interface.report.parameters import ReportParameters
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
