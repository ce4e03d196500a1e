"""Browsers in words."""

import pytest

from interfaces.console.browsers import browser_in_words

pytestmark = pytest.mark.requirement("U6")
WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (f"Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} Chrome/150.0.0.0 Safari/537.36", "Chrome 150 on Linux"),
        (f"Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} HeadlessChrome/150.0.0.0 Safari/537.36", "Chrome 150 on Linux"),
        (
            f"Mozilla/5.0 (Windows NT 10.0; Win64) {WEBKIT} Chrome/150.0.0.0 Safari/537.36 Edg/150.0",
            "Edge 150 on Windows",
        ),
        (
            f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {WEBKIT} Version/19.1 Safari/605.1.15",
            "Safari 19 on macOS",
        ),
        (f"Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) {WEBKIT} Version/19.1", "Safari 19 on iPhone"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0", "Firefox 143 on Linux"),
        ("curl/8.9", "curl/8.9"),
        ("Firefox on Linux", "Firefox on Linux"),
        ("", "–"),
        (None, "–"),
    ],
)
def test_a_browser_is_named_with_its_version_and_its_system(said: str | None, words: str) -> None:
    assert browser_in_words(said) == words
