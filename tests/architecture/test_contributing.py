"""CONTRIBUTING names the folders and tables that there are."""

import re
from pathlib import Path

import pytest

from infrastructure.persistence.tables import metadata
from tests.architecture.source_rules import LAYERS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("layer", LAYERS)
def test_the_layout_names_each_folder_of_a_layer(layer: str) -> None:
    (named,) = re.findall(rf"^{layer} {{2,}}(.+(?:\n {{8,}}.+)*)", TEXT, re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "src" / layer).glob("*/__init__.py")}
    assert sorted(folders - set(re.findall(r"\w+", named))) == []


def test_the_layout_names_each_folder_of_tests() -> None:
    folders = [path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and not path.name.startswith("_")]
    assert [name for name in folders if f"tests/{name}/" not in TEXT] == []


def test_each_variable_that_tests_are_asked_for_with_is_named() -> None:
    files = [path for folder in ("e2e", "integration") for path in (ROOT / "tests" / folder).rglob("*.py")]
    asked = {name for path in files for name in re.findall(r"opt in with (DRAGOMAN_TEST_\w+)", path.read_text("utf-8"))}
    assert "DRAGOMAN_TEST_A2A_TCK" in asked
    assert [name for name in sorted(asked) if f"`{name}" not in TEXT] == []


def test_the_list_of_tables_is_that_of_the_schema() -> None:
    (listed,) = re.findall(r"^Tables: (.+?)\. `run_request`", TEXT, re.MULTILINE | re.DOTALL)
    named = re.sub(r"\(.+?\)", "", listed)
    assert sorted(re.findall(r"\w+", named)) == sorted(metadata.tables)
