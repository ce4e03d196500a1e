"""How long each page of the console takes in Chromium, and what it loads:
`python -m benchmarks --only console`.

A small company has every page. The middle of five loads with a full cache counts: from the click
until the page and its scripts are there (`loadEventEnd`), and until the parts that it fetches by
itself are there. Assets are counted compressed.
"""

import gzip
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import Budget, held
from interfaces.console import pages
from tests.e2e.browser import CHROMIUM, Person, browsing
from tests.e2e.console_pages import addresses, company_with_everything, page_routes

LOADS = 5
_DRAWN = Budget(what="the slowest page of the console is there in", limit=0.3, unit="s")
_ASSETS = Budget(what="compressed assets of the heaviest page", limit=400, unit="KB")
_WHEN = "performance.getEntriesByType('navigation')[0].loadEventEnd"
_NAMES = """[...document.querySelectorAll("script[src], link[rel=stylesheet]")]
    .map(each => new URL(each.src || each.href).pathname.split("/").pop())"""
_STATIC = Path(pages.__file__).parent / "static"


def measure() -> list[str]:
    """The lines of the report; none without a browser."""
    if CHROMIUM is None:
        return []
    lines = ["| page | ms | with its parts, ms | assets, KB |", "|---|---|---|---|"]
    slowest, heaviest = 0.0, 0.0
    with TemporaryDirectory() as folder, company_with_everything(Path(folder)) as company, browsing() as browser:
        person = Person(browser, company.service.url)
        person.sign_in(company.service.key)
        known = addresses(company)
        for route in page_routes():
            loads = [_load(person, f"/console{known[route]}") for _ in range(LOADS)]
            drawn, whole = (statistics.median(times) for times in zip(*loads, strict=True))
            size = sum(_compressed(name) for name in person.page.evaluate(_NAMES)) / 1_000
            lines.append(f"| {route} | {drawn:.0f} | {whole:.0f} | {size:.0f} |")
            slowest, heaviest = max(slowest, drawn / 1_000), max(heaviest, size)
    about = f"Each page of a small company, the middle of {LOADS} loads with a full cache: from the click until the page and its scripts"
    return [
        f"{about} are there,",
        "and until the parts are there that it fetches by itself.",
        "",
        *lines,
        *held((_DRAWN, slowest), (_ASSETS, heaviest)),
    ]


def _load(person: Person, path: str) -> tuple[float, float]:
    person.go(path)
    drawn: float = person.page.evaluate(_WHEN)
    while person.page.locator(".htmx-request").count():
        pass
    return drawn, person.page.evaluate("performance.now()")


def _compressed(name: str) -> int:
    return len(gzip.compress((_STATIC / name).read_bytes()))
