"""Takes the pictures of a finished project for README and docs: report, annotation and browse pages."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

ROOT = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 1080, 1000


def open_browser() -> Chrome:
    """Open headless Chromium from wherever the system has it."""
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
    """Save a screenshot of a page."""
    chrome.get(address)
    time.sleep(0.5)
    output.parent.mkdir(parents=True, exist_ok=True)
    chrome.save_screenshot(str(output))


@contextmanager
def serving(*command: str) -> Iterator[str]:
    """Provide the address of a command's page while the block runs."""
    with subprocess.Popen(
        ["paraforge", *command, "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            found = next(filter(None, (re.search(r"http://\S+", line) for line in server.stdout or ())), None)
            if found is None:
                sys.exit(f"paraforge {' '.join(command)} ended without a page")
            yield found[0]
        finally:
            server.terminate()


def main() -> None:
    """Serve the pages of the project's corpus, and take all pictures or one."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("project", type=Path, help="a project whose 'dvc repro' is finished")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--only", choices=["report", "annotation", "browse"])
    arguments = parser.parse_args()
    project, output, only = arguments.project.resolve(), arguments.output, arguments.only
    corpus, report = str(project / "data" / "corpus"), project / "reports" / "report.html"
    with tempfile.TemporaryDirectory() as temporary, open_browser() as chrome:
        if only in (None, "report"):
            if not report.is_file():
                sys.exit(f"{report} is missing: run 'dvc repro' first")
            take(chrome, report.as_uri(), output / "report.png")
        if only in (None, "browse"):
            with serving("browse", corpus) as address:
                take(chrome, address, output / "browse.png")
        if only in (None, "annotation"):
            answers = str(Path(temporary) / "answers.sqlite")
            with serving("annotate", "serve", corpus, "--database", answers) as address:
                chrome.get(address)
                field = chrome.find_element(By.CSS_SELECTOR, "input#name")
                field.send_keys("Ada")
                field.submit()
                time.sleep(1)
                take(chrome, chrome.current_url, output / "annotation.png")


if __name__ == "__main__":
    main()
