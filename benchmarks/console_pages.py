"""How long each page of the console takes in Chromium, and what it loads: `python -m benchmarks.console_pages`.

A small company has every page. The middle of five loads with a full cache counts: from the click until the page and its
scripts are there (`loadEventEnd`), and until the parts that it fetches by itself are there. Assets are counted compressed.
"""

import gzip
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from interfaces.console import pages
from tests.e2e.browser import Person, browsing
from tests.e2e.console_pages import addresses, company_with_everything, page_routes

LOADS = 5
_WHEN = "performance.getEntriesByType('navigation')[0].loadEventEnd"
_NAMES = """[...document.querySelectorAll("script[src], link[rel=stylesheet]")]
    .map(each => new URL(each.src || each.href).pathname.split("/").pop())"""
_STATIC = Path(pages.__file__).parent / "static"


def main() -> None:
    print("| page | ms | with its parts, ms | assets, KB |\n|---|---|---|---|")
    with TemporaryDirectory() as folder, company_with_everything(Path(folder)) as company, browsing() as browser:
        person = Person(browser, company.service.url)
        person.sign_in(company.service.key)
        known = addresses(company)
        for route in page_routes():
            loads = [_load(person, f"/console{known[route]}") for _ in range(LOADS)]
            drawn, whole = (statistics.median(times) for times in zip(*loads, strict=True))
            size = sum(_compressed(name) for name in person.page.evaluate(_NAMES)) / 1_000
            print(f"| {route} | {drawn:.0f} | {whole:.0f} | {size:.0f} |")
            sys.stdout.flush()


def _load(person: Person, path: str) -> tuple[float, float]:
    person.go(path)
    drawn: float = person.page.evaluate(_WHEN)
    while person.page.locator(".htmx-request").count():
        pass
    return drawn, person.page.evaluate("performance.now()")


def _compressed(name: str) -> int:
    return len(gzip.compress((_STATIC / name).read_bytes()))


if __name__ == "__main__":
    main()
