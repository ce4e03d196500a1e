"""SharedState: what a front end sent, with the patches of calls in the order in which they were
executed."""

from dataclasses import replace
from typing import cast

import pytest

from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent, RunEventType
from domain.runs.shared_state import SharedState
from domain.tools.client_tool import ClientTool
from domain.tools.state_tool import STATE_TOOL, UPDATE_STATE
from tests.builders import RUN, START, a_run

pytestmark = pytest.mark.requirement("X4")


def sent(value: JsonValue) -> SharedState:
    return SharedState.of(replace(a_run(), client_request={"state": value}))


def happened(
    kind: RunEventType, call: str, name: str = UPDATE_STATE, **data: JsonValue
) -> tuple[RunEventType, JsonObject]:
    return kind, {"tool_call_id": call, "name": name, **data}


def began(call: str, path: str, name: str = UPDATE_STATE) -> tuple[RunEventType, JsonObject]:
    patch: list[JsonValue] = [{"op": "add", "path": path, "value": call}]
    return happened(RunEventType.TOOL_STARTED, call, name, params={"patch": patch})


def read(state: SharedState, *events: tuple[RunEventType, JsonObject]) -> list[object]:
    return [
        state.read(RunEvent(run_id=RUN, seq=seq, type=kind, at=START, data=data))
        for seq, (kind, data) in enumerate(events, 1)
    ]


def test_a_patch_applies_when_its_call_was_executed_and_only_once() -> None:
    state = sent({})
    done = [happened(RunEventType.TOOL_EXECUTED, call) for call in ("two", "one")]
    given = read(state, began("one", "/a"), began("two", "/a"), began("one", "/a"), *done)
    assert given == [None, None, None, *([{"op": "add", "path": "/a", "value": call}] for call in ("two", "one"))]
    assert (state.value, state.read_to) == ({"a": "one"}, 5)
    assert read(state, began("three", "/b"), happened(RunEventType.TOOL_EXECUTED, "three")) == [None, None]
    assert state.value == {"a": "one"}


def test_calls_that_failed_and_those_of_other_tools_change_nothing() -> None:
    state = sent({})
    failed = [began("a", "/a"), happened(RunEventType.TOOL_FAILED, "a", error={"code": "patch_invalid"})]
    other = [began("b", "/b", "look"), happened(RunEventType.TOOL_EXECUTED, "b", "look")]
    foreign = [began("c", "/c/d"), happened(RunEventType.TOOL_EXECUTED, "c")]
    unknown = [happened(RunEventType.TOOL_EXECUTED, "d"), (RunEventType.RUN_COMPLETED, {})]
    assert not any(read(state, *failed, *other, *foreign, *unknown))
    assert state.value == {}


def test_a_state_that_comes_when_the_run_is_resumed_replaces_the_one_before() -> None:
    state = sent({"a": 1})
    resumed = RunEventType.RUN_RESUMED, cast(JsonObject, {"client_request": {"state": [1]}})
    given = read(state, (RunEventType.RUN_RESUMED, {}), resumed)
    assert given == [None, [{"op": "replace", "path": "", "value": [1]}]]
    assert (state.value, state.is_replaced, sent({}).is_replaced) == ([1], True, False)


def test_a_run_has_the_tool_if_its_client_sent_a_state_and_has_no_function_of_the_name() -> None:
    assert a_run().tools_of_client == ()
    shared = replace(a_run(), client_request={"state": {"a": 1}})
    assert shared.tools_of_client == (STATE_TOOL,)
    own = ClientTool(name=UPDATE_STATE)
    assert replace(shared, client_tools=(own,)).tools_of_client == (own.as_tool(),)
