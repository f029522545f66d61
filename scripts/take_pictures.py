"""Take the README's pictures of a finished project: its report and its annotation page, in Chromium."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

ROOT = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 1080, 1000
PORT = 8379


def open_browser() -> Chrome:
    """Headless Chromium, from wherever the system has it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        sys.exit("no Chromium with chromedriver: install the packages chromium and chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--hide-scrollbars",
        f"--window-size={WIDTH},{HEIGHT}",
    ):
        options.add_argument(argument)
    return Chrome(options=options, service=Service(driver))


def take(chrome: Chrome, address: str, output: Path) -> None:
    """Save what the window shows of a page."""
    chrome.get(address)
    time.sleep(0.5)
    output.parent.mkdir(parents=True, exist_ok=True)
    chrome.save_screenshot(str(output))


def wait_for(address: str, seconds: float = 60) -> None:
    """Return when a server answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5):  # noqa: S310
                return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.3)


def main() -> None:
    """Serve an annotation of the project's corpus, and take both pictures."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("project", type=Path, help="a project whose 'dvc repro' is finished")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "pictures")
    arguments = parser.parse_args()
    project = arguments.project.resolve()
    report = project / "reports" / "report.html"
    if not report.is_file():
        sys.exit(f"{report} is missing: run 'dvc repro' first")
    with tempfile.TemporaryDirectory() as temporary, open_browser() as chrome:
        take(chrome, report.as_uri(), arguments.output / "report.png")
        command = ["paraforge", "annotate", "serve", str(project / "data" / "corpus")]
        command += ["--database", str(Path(temporary) / "answers.sqlite"), "--port", str(PORT)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            address = f"http://127.0.0.1:{PORT}/"
            wait_for(address)
            chrome.get(address)
            field = chrome.find_element(By.CSS_SELECTOR, "input#name")
            field.send_keys("Ada")
            field.submit()
            time.sleep(1)
            take(chrome, chrome.current_url, arguments.output / "annotation.png")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
