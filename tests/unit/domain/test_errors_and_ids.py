"""The error tree's shorthands, and ids that follow from what they name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import ErrorKind, Violation, conflict, existing, invalid, not_found, require_version
from domain.ids import derived_id, id_near, message_id, tool_call_id
from infrastructure.runtime.system import RandomIds
from tests.builders import RUN, a_run_id
from tests.refusals import refused


@pytest.mark.parametrize(("what", "code"), [("run", "run_not_found"), ("MCP server", "mcp_server_not_found")])
def test_what_is_not_there_is_named_in_the_code(what: str, code: str) -> None:
    error = not_found(what, "x_1")
    assert (error.code, error.kind) == (code, ErrorKind.NOT_FOUND)
    assert "x_1" in error.detail


def test_what_exists_is_returned_and_what_does_not_is_not_found() -> None:
    assert existing(0, "run", "run_1") == 0
    with refused("run_not_found"):
        existing(None, "run", "run_1")


def test_another_version_than_the_expected_one_is_a_conflict_and_none_expects_any() -> None:
    require_version("agent", 3, expected=3)
    require_version("agent", 3, expected=None)
    with refused("version_conflict"):
        require_version("agent", 3, expected=2)


def test_an_error_carries_what_the_caller_needs_to_react() -> None:
    fault = Violation(path="limits.max_turns", message="must be greater than 0")
    assert invalid("limits_invalid", "Limits must be positive.", fault).violations == (fault,)
    busy = conflict("thread_busy", "Run run_1 is queued.", run_id="run_1")
    assert (busy.kind, busy.extra, str(busy)) == (ErrorKind.CONFLICT, {"run_id": "run_1"}, "Run run_1 is queued.")


@pytest.mark.requirement("E3")
def test_a_repeated_step_names_the_same_calls_and_messages() -> None:
    assert tool_call_id(RUN, 1, 0) == tool_call_id(RUN, 1, 0)
    assert message_id(RUN, 1, "assistant") == message_id(RUN, 1, "assistant", attempt=0)


@pytest.mark.requirement("E3")
def test_no_two_calls_and_no_two_messages_share_an_id() -> None:
    calls = [tool_call_id(run, turn, index) for run in (RUN, a_run_id(2)) for turn in range(12) for index in range(12)]
    assert len(set(calls)) == len(calls)
    parts = ("user", "assistant", "tools")
    messages = [message_id(RUN, turn, part, attempt) for turn in range(12) for part in parts for attempt in range(3)]
    assert len(set(messages)) == len(messages)


def test_what_belongs_to_a_run_sorts_beside_what_belongs_to_runs_of_its_time() -> None:
    moments = iter(range(0, 10**9, 10**6))
    ids = RandomIds(unix_time_ns=lambda: 1_790_000_000_000_000_000 + next(moments))
    runs = [ids.new("run") for _ in range(50)]
    near = [id_near("aud", run, f"call_{number}") for run in runs for number in range(4)]
    assert len(set(near)) == len(near)
    assert [one[:14] for one in sorted(near)] == [f"aud_{run[4:14]}" for run in runs for _ in range(4)]
    assert id_near("aud", runs[0], "run.started") == id_near("aud", runs[0], "run.started")


def test_what_belongs_to_two_runs_of_one_millisecond_has_ids_of_its_own() -> None:
    ids = RandomIds(unix_time_ns=lambda: 1_790_000_000_000_000_000)
    near = {id_near("aud", ids.new("run"), part) for _ in range(100) for part in ("run.started", "run.completed")}
    assert len(near) == 200


@given(parts=st.lists(st.text(alphabet="ab_1", max_size=5) | st.integers(0, 99), min_size=1, max_size=4))
def test_a_derived_id_has_its_prefix_and_fits_every_provider(parts: list[str | int]) -> None:
    identifier = derived_id("call", *parts)
    assert identifier.startswith("call_")
    assert identifier.removeprefix("call_").isalnum()
    assert len(identifier) <= 40


def test_where_one_part_ends_and_the_next_begins_matters() -> None:
    assert derived_id("x", "a", "bc") != derived_id("x", "ab", "c") != derived_id("x", "abc")
