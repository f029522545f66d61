"""A headless Chromium for tests of pages."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium")

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.page_server import PATIENCE

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
)


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """Start a headless Chromium with a new profile; see the fixture `chrome`. Skips the test without one."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no Chromium with chromedriver: install the packages chromium and chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


class Page:
    """A browser page with the actions of a person."""

    def __init__(self, chrome: Chrome) -> None:
        self.chrome = chrome

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Wait until ``condition`` returns something true, and return it."""
        return WebDriverWait(
            self.chrome, PATIENCE, poll_frequency=0.05, ignored_exceptions=[Exception]
        ).until(lambda _: condition())

    def element(self, selector: str) -> WebElement:
        """Return the first element of a CSS selector."""
        return self.chrome.find_element(By.CSS_SELECTOR, selector)

    def press(self, *keys: str) -> None:
        """Press keys in the focused element."""
        for key in keys:
            self.chrome.switch_to.active_element.send_keys(key)

    @contextmanager
    def phone(self, width: int) -> Iterator[None]:
        """Emulate a phone of this width in CSS pixels."""
        metrics = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": True}
        self.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        try:
            yield
        finally:
            self.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
