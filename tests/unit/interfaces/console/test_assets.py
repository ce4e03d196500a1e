"""What the console's pages load: libraries as they are locked, and not much of them."""

import gzip
import json
import re
from pathlib import Path

import pytest

from interfaces.console import pages
from interfaces.console.navigation import NAVIGATION

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


@pytest.mark.requirement("U6")
def test_the_icons_are_those_that_pages_use_in_the_locked_version_with_their_licence() -> None:
    lock = json.loads((CONSOLE / "frontend" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    version = lock["node_modules/lucide-static"]["version"]
    sprite, masks, licence = (
        (CONSOLE / "static" / name).read_text(encoding="utf-8") for name in ("icons.svg", "icons.css", "icons.LICENSE")
    )
    assert f"lucide-static@{version}" in sprite.partition("\n")[0]
    assert f"lucide-static@{version}" in masks.partition("\n")[0]
    assert f"lucide-static {version}\n" in licence
    templates = "".join(path.read_text(encoding="utf-8") for path in CONSOLE.glob("templates/**/*.html"))
    named = set(re.findall(r"icon\([\"']([a-z0-9-]+)[\"']", templates))
    named |= {each.icon for _, entries in NAVIGATION for each in entries}
    assert set(re.findall(r'<symbol id="([a-z0-9-]+)"', sprite)) == named
    styles = (CONSOLE / "static" / "console.css").read_text(encoding="utf-8")
    assert set(re.findall(r"--icon-([a-z-]+):", masks)) == set(re.findall(r"var\(--icon-([a-z-]+)\)", styles))


def test_all_assets_of_the_console_together_stay_below_the_bound_of_one_page() -> None:
    assert sum(len(gzip.compress((CONSOLE / "static" / name).read_bytes())) for name in pages.STATIC) <= MAX_BYTES


@pytest.mark.requirement("G2")
def test_a_form_that_is_sent_before_the_scripts_have_loaded_leaves_nothing_in_an_address() -> None:
    forms = {
        form: path.name
        for path in CONSOLE.glob("templates/**/*.html")
        for form in re.findall(r"<form\b[^>]*>", path.read_text(encoding="utf-8"))
    }
    assert len(forms) > 50
    assert [(name, form) for form, name in forms.items() if 'method="post"' not in form and "hx-post" in form] == []
    # The other forms are filters, which belong in the address.
    assert [(name, form) for form, name in forms.items() if "method=" not in form] == []
