"""An annotation session in a real browser: keys, clicks, a killed server, and closed tabs."""

from pathlib import Path

import pytest

pytest.importorskip("flask")
pytest.importorskip("waitress")
pytest.importorskip("selenium")

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from paraforge.interface.annotation.server import presentation_order
from paraforge.interface.annotation.store import AnnotationStore, Answer, create_store
from tests.chromium import Page
from tests.interface.annotation.evaluations import ServerProcess, small_draw

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

BANDS = [pair.band for pair in small_draw().pairs]
ORDER = [index + 1 for index in presentation_order(BANDS, 1, "Anna")]


class AnnaPage(Page):
    """The browser as Anna uses it."""

    def at(self, place: int) -> None:
        """Wait for the pair at a place, with its script run."""
        self.wait(lambda: self.chrome.current_url.endswith(f"/pairs/{place}"))
        self.wait(lambda: self.element("#keys").is_displayed())
        self.wait(lambda: self.chrome.switch_to.active_element.get_attribute("id") == "pair")

    def says(self, text: str) -> None:
        """Wait until the status line, which screen readers are told, has a text."""
        self.wait(lambda: text in self.element("#status").text)

    def checked(self) -> list[str]:
        """Values of the chosen grades."""
        found = self.chrome.find_elements(By.CSS_SELECTOR, "input[type=radio]:checked")
        return [value for one in found if (value := one.get_attribute("value"))]

    def join(self, address: str) -> None:
        """Begin as Anna."""
        self.chrome.get(address)
        self.element("#name").send_keys("Anna", Keys.ENTER)


@pytest.fixture
def page(chrome: Chrome) -> AnnaPage:
    return AnnaPage(chrome)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return create_store(tmp_path / "annotations.sqlite", small_draw()).path


def test_keyboard_session_survives_killed_server(page: AnnaPage, database: Path) -> None:
    with ServerProcess(database) as server:
        page.join(server.address)
        page.at(1)
        assert f"Reference {ORDER[0] - 1}." in page.element("#pair").text
        assert "<script>document.title" in page.element("#pair").text
        assert page.chrome.title.startswith("Pair 1 of 8")
        page.press("3")
        assert page.chrome.switch_to.active_element.get_attribute("name") == "fluency"
        page.press("2")
        assert page.chrome.switch_to.active_element.get_attribute("id") == "next"
        page.says("Saved.")
        page.press(Keys.ENTER)
        page.at(2)
        # Half an answer is saved, and its pair skipped until the others are graded.
        page.press("1")
        page.says("Saved.")
        assert AnnotationStore(database).answers(1).get(ORDER[1]) == Answer(1, None)
        page.element("#pair").click()
        page.press("c", Keys.ESCAPE)
        # What is pressed while the next page loads is no grade of this one.
        page.chrome.execute_script(
            "for (const [code, key] of [['Enter', 'Enter'], ['Digit3', '3']]) document.activeElement"
            ".dispatchEvent(new KeyboardEvent('keydown', {code, key, bubbles: true}))"
        )
        page.at(3)
        page.press("b")
        page.at(2)
        assert page.checked() == ["1"]
        server.kill()
        page.press("3")
        page.says("Not saved yet")
        page.press(Keys.ENTER)
        assert page.checked() == ["1", "3"]
    with ServerProcess(database, server.port) as server:
        # What was pressed in its absence arrives by itself, and the session continues.
        page.at(3)
        assert AnnotationStore(database).answers(1) == {ORDER[0]: Answer(3, 2), ORDER[1]: Answer(1, 3)}
        page.press("c")
        assert page.chrome.switch_to.active_element.get_attribute("id") == "comment"
        page.press("1 b u", Keys.ESCAPE, "2", "2")
        page.press(Keys.ENTER)
        page.at(4)
        assert AnnotationStore(database).answers(1)[ORDER[2]] == Answer(2, 2, "1 b u")
        page.press("b")
        page.at(3)
        assert page.checked() == ["2", "2"]
        page.press("u")
        page.wait(lambda: page.checked() == [])
        page.at(3)
        for place in range(3, 9):
            page.at(place)
            page.press("3", "3", Keys.ENTER)
        page.wait(lambda: "All 8 pairs are graded" in page.element("main").text)
        assert page.element("progress").get_attribute("value") == "8"
        # A server that is killed may be in the middle of a reply.
        killed = ("ERR_CONNECTION_REFUSED", "ERR_CONTENT_LENGTH_MISMATCH", "ERR_EMPTY_RESPONSE")
        log = page.chrome.get_log("browser")
        errors = [one for one in log if not any(name in one["message"] for name in killed)]
        assert [error for error in errors if error["level"] == "SEVERE"] == []
    answers = AnnotationStore(database).answers(1)
    assert answers.pop(ORDER[0]) == Answer(3, 2) and answers.pop(ORDER[1]) == Answer(1, 3)
    assert set(answers.values()) == {Answer(3, 3)} and len(answers) == 6


def test_mouse_session(page: AnnaPage, database: Path) -> None:
    with ServerProcess(database) as server:
        page.join(server.address)
        page.at(1)
        page.element("#paraphrase label:nth-child(2)").click()
        page.element("#fluency label:nth-child(3)").click()
        page.element("#comment").send_keys("hm")
        page.wait(lambda: AnnotationStore(database).answers(1).get(ORDER[0]) == Answer(2, 3, "hm"))
        page.element("#next").click()
        page.at(2)
        page.element("#shortcuts").click()
        page.press("3")
        assert page.checked() == []  # single keys are switched off
        page.element("#shortcuts").click()
        with page.phone(390):  # a narrow window has a keyboard, a phone has none
            keys = page.element("#keys")
            assert keys.is_displayed()
            page.chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
            page.wait(lambda: not keys.is_displayed())
            page.chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        page.element("#back").click()
        page.at(1)
        assert page.checked() == ["2", "3"]
        page.element("#undo").click()
        page.wait(lambda: page.checked() == [])
        assert not AnnotationStore(database).answers(1)[ORDER[0]].complete


@pytest.mark.parametrize("waits", [False, True])
def test_tab_closed_right_after_key(page: AnnaPage, database: Path, waits: bool) -> None:
    """The grade is kept even if it still waits for another one to be sent."""
    with ServerProcess(database) as server:
        page.join(server.address)
        page.at(1)
        if waits:
            page.chrome.execute_script("window.fetch = () => new Promise(() => {})")
        page.press("3", "3")
        page.chrome.get("about:blank")
        page.wait(lambda: AnnotationStore(database).answers(1).get(ORDER[0]) == Answer(3, 3))


def test_unsaved_page_asks_before_leaving(page: AnnaPage, database: Path) -> None:
    closing = "return !window.dispatchEvent(new Event('beforeunload', {cancelable: true}))"
    with ServerProcess(database) as server:
        page.join(server.address)
        page.at(1)
        assert not page.chrome.execute_script(closing)
        AnnotationStore(database).record(1, ORDER[0], Answer(3, 3, "of another tab"))
        moved = database.rename(database.with_suffix(".moved"))
        page.press("2")
        page.says("Not saved yet. The database says: unable to open database file. Trying again")
        moved.rename(database)
        page.says("Saved.")
        assert AnnotationStore(database).answers(1) == {ORDER[0]: Answer(2, 3, "of another tab")}
        server.kill()
        page.press("1")
        page.says("Not saved yet. No answer")
        assert page.chrome.execute_script(closing)


def test_save_and_next_is_visible_on_phone(page: AnnaPage, database: Path) -> None:
    """The button is visible at every scroll position and hides no field."""
    uncovered = (
        "const box = arguments[0].getBoundingClientRect();"
        "const seen = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);"
        "return arguments[0].contains(seen);"
    )
    with page.phone(390), ServerProcess(database) as server:
        page.join(server.address)
        page.at(1)
        height = page.chrome.execute_script("return document.documentElement.scrollHeight")
        assert height > 1000
        for place in (0, height // 2, height):
            page.chrome.execute_script(f"window.scrollTo(0, {place})")
            assert page.chrome.execute_script(uncovered, page.element("#next"))
        for selector in ("#comment", "input[name=fluency]", "#shortcuts"):
            page.chrome.execute_script("window.scrollTo(0, 0)")
            page.chrome.execute_script("arguments[0].focus()", page.element(selector))
            assert page.chrome.execute_script(uncovered, page.element(selector)), selector
        assert page.chrome.execute_script("return document.documentElement.scrollWidth") <= 390
