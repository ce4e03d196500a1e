"""The forms of nodes have the fields that the compiler reads, of each kind in each mode."""

from dataclasses import fields, is_dataclass

import pytest

from domain.json_value import JsonObject
from domain.workflows.config_reader import ConfigReader
from domain.workflows.graph import TOOL_KINDS, NodeKind, NodeMode
from domain.workflows.node_config import read_config, read_settings
from interfaces.console.node_forms import FORMS, NodeForm

BEYOND_FORMS = {"inline", "exposed"}
"""What no field of the configuration has the name of: a definition in the place of a server's
slug."""


def read(form: NodeForm, config: JsonObject) -> ConfigReader:
    reader = ConfigReader(config)
    read_settings(reader)
    read_config(form.kind, form.mode, reader)
    return reader


def names(form: NodeForm) -> set[str]:
    shown = form.shown()["schema"]
    assert isinstance(shown, dict)
    assert isinstance(shown["properties"], dict)
    return set(shown["properties"])


def test_each_kind_has_a_form_in_each_mode_that_it_may_have() -> None:
    kinds = {(form.kind, form.mode) for form in FORMS}
    steps = {(kind, NodeMode.NORMAL) for kind in NodeKind if kind is not NodeKind.NATIVE_TOOL}
    assert kinds == steps | {(kind, NodeMode.TOOL) for kind in TOOL_KINDS}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_the_compiler_knows_each_field_of_a_form(form: NodeForm) -> None:
    # A condition has an expression or cases.
    tried = [{name: 1} for name in names(form)]
    unknown = [
        fault for config in tried for fault in read(form, dict(config)).faults if "not a known field" in fault.message
    ]
    assert unknown == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_a_form_has_each_field_that_a_configuration_has(form: NodeForm) -> None:
    reader = ConfigReader({})
    config = read_config(form.kind, form.mode, reader)
    assert is_dataclass(config)
    of_the_other_mode = [{field.name: 1} for field in fields(config) if field.name not in BEYOND_FORMS]
    known = {
        name
        for tried in of_the_other_mode
        for name in tried
        if not any("not a known field" in fault.message for fault in read(form, dict(tried)).faults)
    }
    assert known <= names(form)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_a_form_requires_what_the_compiler_requires(form: NodeForm) -> None:
    missing = {
        fault.path
        for fault in read(form, {}).faults
        if "is required" in fault.message or "must be one of" in fault.message
    }
    assert missing - {"tool", "expression", "cases"} <= set(form.required)
