"""ChangeState: calls that change the state of the front end, one after another, each once."""

from dataclasses import replace
from typing import cast

import pytest
from pytest_mock import MockerFixture

from application.runs.execution.change_state import ChangeState
from application.runs.ports import RunReader
from application.tracing.ports import Tracer
from domain.ids import RunId
from domain.json_value import JsonObject, JsonValue
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import RunStatus
from domain.runs.shared_state import SharedState
from domain.threads.message import Role
from domain.tools.state_tool import MAX_STATE_BYTES, UPDATE_STATE
from tests.builders import RUN, START, a_tool_call
from tests.doubles.scripted_model import ModelTurn
from tests.run_builders import a_claimed_run, a_session
from tests.unit.application.runs.crashing import crash_after
from tests.unit.application.runs.doubles import call, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent

pytestmark = pytest.mark.requirement("X4")


def changes(*patches: JsonObject | tuple[JsonObject, ...]) -> ModelTurn:
    """A turn with a call for each patch."""
    given = [list(patch) if isinstance(patch, tuple) else [patch] for patch in patches]
    return ModelTurn(calls=tuple(call(UPDATE_STATE, {"patch": cast(JsonValue, patch)}) for patch in given))


def add(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


async def start(harness: RunHarness, state: JsonValue) -> RunId:
    """A run of a front end with this state."""
    run_id = await harness.start()
    stored = harness.state.runs[run_id]
    stored.run = replace(stored.run, client_request={"state": state})
    return run_id


def state_of(harness: RunHarness, run_id: RunId) -> JsonValue:
    """As any reader of the events has it."""
    state = SharedState.of(harness.run(run_id))
    for event in harness.state.runs[run_id].events:
        state.read(event)
    return state.value


async def test_calls_of_one_turn_and_of_later_ones_change_the_state_in_order() -> None:
    items = changes(add("/items", []), *(add("/items/-", number) for number in range(12)))
    harness = RunHarness([items, changes({"op": "remove", "path": "/items/0"}), says()])
    run_id = await start(harness, {"a": 1})
    await harness.worker.execute(run_id)
    assert state_of(harness, run_id) == {"a": 1, "items": list(range(1, 12))}
    assert {entry.result and entry.result.error_code for entry in harness.ledger(run_id)} == {None}
    assert UPDATE_STATE in [tool.name for tool in harness.model.requests[0].tools]
    assert_consistent(harness, run_id)


async def test_events_are_read_once_and_page_by_page(mocker: MockerFixture) -> None:
    run = replace(a_claimed_run(), client_request={"state": {"items": []}}, last_seq=3)
    runs = mocker.create_autospec(RunReader, instance=True)
    began: JsonObject = {"tool_call_id": "call_1", "name": UPDATE_STATE, "params": {"patch": [add("/items/-", 1)]}}
    kinds = [RunEventType.TOOL_STARTED, RunEventType.TOOL_EXECUTED, RunEventType.RUN_RESUMED]
    events = [RunEvent(run_id=RUN, seq=seq, type=kind, at=START, data=began) for seq, kind in enumerate(kinds, 1)]
    runs.events.side_effect = [tuple(events[:1]), tuple(events[1:])]
    session = a_session(run=run, tracer=mocker.create_autospec(Tracer, instance=True))
    change_state = ChangeState(runs=runs)
    second = a_tool_call(name=UPDATE_STATE, params={"patch": [{"op": "remove", "path": "/items/0"}]})
    for _ in range(2):
        assert (await change_state.execute(session, second)).is_error is False
    assert [asked.kwargs["after_seq"] for asked in runs.events.await_args_list] == [0, 1]
    assert session.shared_state.value == {"items": [1]}


async def test_a_patch_that_does_not_apply_changes_nothing_and_the_model_reads_why() -> None:
    large = add("/b", "x" * MAX_STATE_BYTES)
    harness = RunHarness([changes((add("/b", 1), add("/c/d", 1)), large), changes(add("/b", 2)), says()])
    run_id = await start(harness, {"a": 1})
    await harness.worker.execute(run_id)
    failed, too_large, done = harness.ledger(run_id)
    assert (failed.result and failed.result.error_code, done.result and done.result.error_code) == (
        "patch_invalid",
        None,
    )
    assert failed.result is not None
    assert "operation 1" in failed.result.text
    assert too_large.result is not None
    assert "bytes" in too_large.result.text
    assert state_of(harness, run_id) == {"a": 1, "b": 2}


@pytest.mark.parametrize("stored", range(6))
async def test_a_worker_that_is_lost_after_any_step_changes_nothing_twice(mocker: MockerFixture, stored: int) -> None:
    turns = [changes(add("/items/-", 1), add("/items/-", 2)), changes(add("/items/-", 3)), says()]
    harness = RunHarness(lambda request: turns[sum(message.role is Role.TOOL for message in request.messages)])
    run_id = await start(harness, {"items": []})
    await crash_after(harness, mocker, stored)
    await harness.worker.execute(run_id)
    run = harness.run(run_id)
    assert (run.status, run.attempt) == (RunStatus.COMPLETED, 2)
    assert state_of(harness, run_id) == {"items": [1, 2, 3]}
    assert_consistent(harness, run_id)


async def test_a_run_without_a_state_has_no_such_tool() -> None:
    harness = RunHarness([changes(add("/a", 1)), says()])
    run_id = await harness.play()
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "tool_not_found"


@pytest.mark.requirement("C2")
async def test_policies_hold_for_the_tool() -> None:
    rules = ToolPolicies(rules=((UPDATE_STATE, ToolRule(decision=Verdict.DENY)),))
    harness = RunHarness([changes(add("/a", 1)), says()])
    harness.change_agent(tool_policies=rules)
    run_id = await start(harness, {"b": 1})
    await harness.worker.execute(run_id)
    assert state_of(harness, run_id) == {"b": 1}
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.outcome == "blocked"
