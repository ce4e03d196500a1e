"""What the console's pages load: libraries as they are locked, and not much of them."""

import gzip
import json
import re
from pathlib import Path

import pytest

from interfaces.console import pages

CONSOLE = Path(pages.__file__).parent
MAX_BYTES = 400_000
"""Of one page, compressed (docs/adr/0076)."""


@pytest.mark.parametrize(("bundle", "libraries"), [("markdown", {"markdown-it", "highlight.js"}), ("yaml", {"yaml"})])
def test_a_bundle_has_the_locked_versions_and_their_licences(bundle: str, libraries: set[str]) -> None:
    lock = json.loads((CONSOLE / "frontend" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    first_line = (CONSOLE / "static" / f"{bundle}.min.js").read_text(encoding="utf-8").partition("\n")[0]
    bundled = dict(re.findall(r"([\w.-]+)@([\d.]+)", first_line))
    assert libraries <= bundled.keys()
    assert bundled == {name: lock[f"node_modules/{name}"]["version"] for name in bundled}
    licences = (CONSOLE / "static" / f"{bundle}.LICENSE").read_text(encoding="utf-8")
    assert all(f"{name} {version}\n" in licences for name, version in bundled.items())


def test_all_assets_of_the_console_together_stay_below_the_bound_of_one_page() -> None:
    assert sum(len(gzip.compress((CONSOLE / "static" / name).read_bytes())) for name in pages.STATIC) <= MAX_BYTES
