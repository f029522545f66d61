"""The browse page in a real browser: keyboard, mouse, touch, links, and a phone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("flask")
pytest.importorskip("waitress")
pytest.importorskip("selenium")

from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.chromium import Page
from tests.corpus.selection.published import publish_pairs
from tests.interface.browse.conftest import PUBLISHED, SIMPLE
from tests.page_server import PageServer

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(hostile: Path) -> Iterator[PageServer]:
    with PageServer("browse", str(hostile / "corpus"), "--port", "0") as process:
        yield process
        assert process.terminate() == 130


class BrowsePage(Page):
    """The browser as somebody uses it who looks for a threshold."""

    def open(self, address: str) -> None:
        """Open a page, and wait for its script."""
        self.chrome.get(address)
        self.wait(lambda: self.chrome.execute_script("return document.documentElement.dataset.ready"))

    def kept(self) -> int:
        """How many pairs the page says are kept."""
        return int(self.text("#summary strong").replace(",", ""))

    def text(self, selector: str) -> str:
        """Text of an element, read at once: what follows the handles is replaced as a whole."""
        return self.chrome.execute_script(f"return document.querySelector({selector!r}).textContent")

    def click(self, selector: str) -> None:
        """Click an element that is in view."""
        element = self.element(selector)
        self.chrome.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def handle(self, name: str) -> WebElement:
        """A handle by the name that is read out."""
        return self.element(f'input[type=range][aria-label="{name}"]')

    def follows(self, before: int) -> int:
        """Wait for another number of kept pairs."""
        self.wait(lambda: self.kept() != before)
        return self.kept()


@pytest.fixture
def page(chrome: Chrome) -> BrowsePage:
    return BrowsePage(chrome)


def test_browse_by_keyboard(page: BrowsePage, server: PageServer) -> None:
    page.open(server.address)
    usual = page.kept()
    lowest = page.handle("Lowest paraphrase score kept")
    for _ in range(60):
        if page.chrome.switch_to.active_element == lowest:
            break
        page.press(Keys.TAB)
    assert page.chrome.switch_to.active_element == lowest
    assert lowest.get_attribute("aria-valuetext") == "0.2"
    page.press(Keys.ARROW_RIGHT * 10)
    page.wait(lambda: "paraphrase_score.min=0.3" in page.chrome.current_url)
    assert page.chrome.switch_to.active_element == lowest
    assert page.element("input[name='paraphrase_score.min']").get_attribute("value") == "0.3"
    page.wait(lambda: "0.3" in page.text("#section"))
    page.wait(lambda: "below 0.3" in page.text("#reasons"))
    fewer = page.kept()  # not of a score on the way
    assert fewer < usual
    # To the end: no bound any more, so that what was rejected is taken back.
    page.press(Keys.HOME)
    assert lowest.get_attribute("aria-valuetext") == "no lower bound"
    assert page.follows(fewer) > usual
    # A handle does not pass the other one.
    page.press(Keys.END)
    highest = page.element("input[name='paraphrase_score.max']").get_attribute("value")
    assert page.element("input[name='paraphrase_score.min']").get_attribute("value") == highest == "1"


def test_open_page_adopts_new_thresholds(page: BrowsePage, tmp_path: Path) -> None:
    publish_pairs(tmp_path, rows=300, filters=SIMPLE)
    with PageServer("browse", str(tmp_path / "corpus"), "--port", "0") as process:
        page.open(process.address)
        publish_pairs(tmp_path, rows=400, filters=PUBLISHED)
        flag = "input[name='flag.output_truncated']"
        page.click(flag)
        page.wait(lambda: "0.95" in page.text("#section"))
        assert page.element("input[name='overlap_3.max']").get_attribute("value") == "0.9"
        assert page.element(flag).is_selected() and "output_truncated" in page.text("#section")


def test_link_reproduces_view(page: BrowsePage, server: PageServer) -> None:
    page.open(server.address)
    usual = page.kept()
    page.element("input[name=q]").send_keys("house")
    found = page.follows(usual)
    page.element("input[name='overlap_3.max']").send_keys("0.45")
    page.wait(lambda: "0.45" in page.text("#section") and "0.45" in page.chrome.current_url)
    fewer = page.kept()
    assert fewer < found
    address, section = page.chrome.current_url, page.text("#section")
    assert section and re.search(r"maximum: 0\.45\n\s+score: overlap_3", section)
    page.open(address)
    assert page.kept() == fewer and page.chrome.current_url == address
    assert page.text("#section") == section
    assert page.element("input[name=q]").get_attribute("value") == "house"
    assert float(page.handle("Highest trigram overlap kept").get_attribute("value") or 0) == 0.45
    for element in page.chrome.find_elements(By.CSS_SELECTOR, ".card"):
        assert "house" in element.text.lower()
    page.click("#reset")
    page.wait(lambda: page.kept() == usual)


def test_browse_by_mouse_and_touch(page: BrowsePage, server: PageServer) -> None:
    page.open(server.address)
    usual = page.kept()
    lowest = page.handle("Lowest paraphrase score kept")
    page.chrome.execute_script("arguments[0].scrollIntoView({block: 'center'})", lowest)
    share = page.chrome.execute_script(
        "const one = arguments[0]; return (one.value - one.min) / (one.max - one.min)", lowest
    )
    box = page.chrome.execute_script("return arguments[0].getBoundingClientRect().toJSON()", lowest)
    x, y = box["x"] + 14 + share * (box["width"] - 28), box["y"] + box["height"] / 2
    drag = ActionChains(page.chrome)
    drag.w3c_actions.pointer_action.move_to_location(int(x), int(y)).pointer_down()
    drag.w3c_actions.pointer_action.move_to_location(int(x) + 60, int(y)).pointer_up()
    drag.perform()
    fewer = page.follows(usual)
    assert fewer < usual
    with page.phone(360):
        page.chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        page.open(server.address)
        highest = page.handle("Highest trigram overlap kept")
        page.chrome.execute_script("arguments[0].scrollIntoView({block: 'center'})", highest)
        box = page.chrome.execute_script("return arguments[0].getBoundingClientRect().toJSON()", highest)
        at = {"x": box["x"] + box["width"] - 14, "y": box["y"] + box["height"] / 2}
        there = {**at, "x": box["x"] + box["width"] / 2}
        for kind, points in (("touchStart", [at]), ("touchMove", [there]), ("touchEnd", [])):
            page.chrome.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        assert page.follows(usual) < usual
        page.chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_browse_reasons_and_rejected_pairs(page: BrowsePage, server: PageServer) -> None:
    page.open(server.address)
    assert page.chrome.title.startswith("A <corpus>")  # hostile text is text
    assert "<script>document.title" in page.text("#pairs")
    before = page.text("#pairs")
    page.click("#others")
    page.wait(lambda: page.text("#pairs") != before and "draw=2" in page.chrome.current_url)
    page.click("#reasons [data-reason=length]")
    page.wait(lambda: page.text(".side.rejected h2").startswith("Rejected: more than 10 tokens"))
    reasons = (By.CSS_SELECTOR, ".side.rejected .why")
    words = {"more than 10 tokens on one side"}
    page.wait(lambda: {element.text for element in page.chrome.find_elements(*reasons)} == words)
    page.element("input[name=q]").send_keys("x" * 200)
    page.wait(lambda: page.kept() == 0)
    page.element("input[name='overlap_3.min']").send_keys("0.9")
    page.element("input[name='overlap_3.max']").send_keys("0.1")
    page.wait(lambda: "above maximum" in page.text("#status"))
    errors = [
        one
        for one in page.chrome.get_log("browser")
        if one["level"] == "SEVERE" and "status of 400" not in one["message"]
    ]
    assert errors == []


def test_browse_fits_on_phone(page: BrowsePage, server: PageServer) -> None:
    with page.phone(360):
        page.open(server.address)
        assert page.chrome.execute_script("return document.documentElement.scrollWidth") <= 360
        # Pairs come before the handles, to which a link leads.
        tops = (
            "return ['.side.kept .card', '.score']"
            ".map((one) => document.querySelector(one).getBoundingClientRect().y)"
        )
        pair, handles = page.chrome.execute_script(tops)
        assert pair < handles
        assert page.element("a[href='#thresholds']").is_displayed()
        # The counts stay in view while a handle far down is moved.
        last = page.chrome.find_elements(By.CSS_SELECTOR, "input[type=range]")[-1]
        page.chrome.execute_script("arguments[0].scrollIntoView({block: 'center'})", last)
        top = page.chrome.execute_script(
            "return document.querySelector('#summary strong').getBoundingClientRect().y"
        )
        assert 0 <= top < 100
        width = page.chrome.execute_script("return arguments[0].getBoundingClientRect().width", last)
        assert width > 250
