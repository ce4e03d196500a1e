"""Rows of tool definitions that a release stored that pinned fewer parts."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from domain.mcp.pinning import pinned
from infrastructure.persistence.mcp.rows import definition_rows, pinned_tool_of
from tests.builders import ORG, a_catalog, a_definition


@pytest.mark.requirement("B13")
def test_a_row_without_the_version_of_its_pin_has_the_first_one() -> None:
    (row,) = definition_rows(ORG, a_catalog(tools=(a_definition("echo"),)))
    definition = json.loads(str(row["definition_json"]))
    assert definition.pop("pin_version") == 2
    del definition["digest"]
    columns = SimpleNamespace(definition=json.dumps(definition), standing=None, approved_definition=None)
    earlier = pinned_tool_of(columns)  # type: ignore[arg-type]  # its columns by name
    assert earlier.definition.pin_version == 1
    listed = replace(a_definition("echo"), display={"title": "Echo"})
    stored = pinned(a_catalog(tools=(listed,)), a_catalog(tools=(earlier.definition,)))
    assert stored.usable == (listed,)
    assert [json.loads(str(row["definition_json"]))["pin_version"] for row in definition_rows(ORG, stored)] == [2]


@pytest.mark.requirement("S3")
def test_a_stored_definition_has_its_digest() -> None:
    (row,) = definition_rows(ORG, a_catalog(tools=(a_definition("echo"),)))
    columns = SimpleNamespace(definition=row["definition_json"], standing=None, approved_definition=None)
    found = pinned_tool_of(columns).definition  # type: ignore[arg-type]  # its columns by name
    assert vars(found)["digest"] == a_definition("echo").digest
