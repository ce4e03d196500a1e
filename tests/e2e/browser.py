"""Debian's Chromium, as people's browsers are: what it complains of is kept, and fails the test."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, FloatRect, Locator, Page, expect, sync_playwright

from tests.e2e.service import ROOT

CHROMIUM = shutil.which("chromium")
AXE = ROOT / "tests" / "node" / "node_modules" / "axe-core" / "axe.min.js"
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
OF_COLORS = ("color-contrast", "link-in-text-block")
"""The rules that a theme can break which the other one keeps."""
WAIT_MS = 60_000
MAX_HEIGHT = 1_000
"""Of pictures, in pixels."""
_ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-lcd-text",
)


def needs_browser() -> pytest.MarkDecorator:
    """Not run without Chromium, which `.ci/run` takes for a failure (`tests/completeness.py`)."""
    return pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: `make browser`")


_RENEW = """([selector, event]) => new Promise(done => {
    const part = document.querySelector(selector);
    part.addEventListener("htmx:after:swap", happened => { if (happened.target === part) done(); });
    document.body.dispatchEvent(new CustomEvent(event));
})"""


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser with a profile of its own."""
    assert CHROMIUM is not None
    expect.set_options(timeout=WAIT_MS)
    sandbox = () if os.geteuid() else ("--no-sandbox",)  # which Chromium does not have as root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*_ARGUMENTS, *sandbox], timeout=2 * WAIT_MS
        )
        try:
            yield browser
        finally:
            browser.close()


class Person:
    """Somebody at a page of their own. `complaints` are errors of the page's scripts and what the
    browser refused."""

    def __init__(self, browser: Browser, url: str, *, width: int = 1280, dark: bool = False) -> None:
        self._url = url
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        self.page: Page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.complaints: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def sign_in(self, key: str) -> None:
        """Through the form, to the overview. Its scripts have run when this returns."""
        self.page.goto(f"{self._url}/console")
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("heading", name="Overview").wait_for()
        self.page.wait_for_load_state()

    def go(self, path: str) -> None:
        """To a page by its address."""
        self.page.goto(f"{self._url}{path}")

    def follow(self, name: str, path: str) -> None:
        """A link, to the page it leads to, whose scripts have run then."""
        self.page.get_by_role("link", name=name, exact=True).click()
        self.page.wait_for_url(f"{self._url}{path}")

    def renew(self, selector: str, event: str) -> None:
        """Let a part of the page be fetched again, as `event` does it, until it is there."""
        self.page.evaluate(_RENEW, [selector, event])

    def violations(self, rules: Sequence[str] = WCAG) -> list[str]:
        """What axe finds against WCAG 2.2 AA on the page as it stands, or against some `rules`."""
        if not self.page.evaluate("'axe' in window"):
            # Evaluated by the debugger's protocol, which the page's own policy does not hold back.
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        wanted = {"runOnly": list(rules), "resultTypes": ["violations"]}
        found: dict[str, Any] = self.page.evaluate("wanted => axe.run(document, wanted)", wanted)
        return [
            f"{violation['id']}: {node['html'][:200]}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]

    def repeated_ids(self) -> list[str]:
        """Ids that more than one element of the page has."""
        ids: list[str] = self.page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
        return sorted({each for each in ids if ids.count(each) > 1})

    def keep(self, name: str, folder: Path, *, top: Locator | None = None, height: int = MAX_HEIGHT) -> None:
        """A picture of the page, from its top or that of a part of it, at most so high."""
        self.page.evaluate("window.scrollTo(0, 0)")  # what sticks to the window is drawn at its place
        box = None if top is None else top.bounding_box()
        begin = 0.0 if box is None else max(0.0, box["y"] - 16)
        whole: int = self.page.evaluate("document.documentElement.scrollHeight")
        size = self.page.viewport_size or {"width": 1280, "height": 800}
        clip: FloatRect = {"x": 0, "y": begin, "width": size["width"], "height": min(whole - begin, height)}
        self.page.screenshot(path=folder / f"{name}.png", full_page=True, clip=clip, animations="disabled")

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)
