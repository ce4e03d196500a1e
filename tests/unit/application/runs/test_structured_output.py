"""Runs with an output schema: the answer matches it, or the run says why it does not."""

import pytest
from pytest_mock import MockerFixture

from domain.json_value import JsonObject
from domain.runs.events import RunEventType
from domain.runs.finish_reason import FinishReason
from domain.runs.limits import IncompleteReason, LimitSettings
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.threads.message import Role
from tests.doubles.mcp_connections import InMemoryMcpServer, text_reply
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.unit.application.runs.crashing import crash_after
from tests.unit.application.runs.doubles import asks, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent
from tests.unit.application.runs.test_retry_run import retry

SCHEMA: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LISBON = '{"city": "Lisbon"}'
READ = "mcp__files__read"
FILES = {"files": InMemoryMcpServer(tools={"read": text_reply("the file's text")})}


def a_harness(*turns: ModelTurn, limits: LimitSettings | None = None, tools: bool = False) -> RunHarness:
    harness = RunHarness(turns, limits=limits, servers=FILES if tools else None)
    harness.change_agent(output_schema=SCHEMA)
    return harness


@pytest.mark.requirement("H3")
async def test_an_answer_that_matches_completes_the_run_with_its_object() -> None:
    harness = a_harness(says(LISBON))
    run = harness.run(await harness.play())
    assert (run.status, run.output, run.output_json) == (RunStatus.COMPLETED, LISBON, {"city": "Lisbon"})
    assert harness.model.requests[0].output_schema == SCHEMA


@pytest.mark.requirement("H3")
async def test_without_a_schema_an_answer_has_no_object() -> None:
    harness = RunHarness([says(LISBON)])
    run = harness.run(await harness.play())
    assert (run.status, run.output_json) == (RunStatus.COMPLETED, None)
    assert harness.model.requests[0].output_schema is None


@pytest.mark.requirement("H3")
async def test_the_schema_of_the_run_replaces_that_of_its_agent() -> None:
    harness = a_harness(says('{"n": 1}'))
    run_id = await harness.start(output_schema={"type": "object", "required": ["n"]})
    await harness.worker.execute(run_id)
    assert harness.run(run_id).output_json == {"n": 1}


@pytest.mark.requirement("H3")
async def test_an_answer_that_does_not_match_is_repaired_in_one_turn() -> None:
    harness = a_harness(says("Lisbon."), says(LISBON))
    run_id = await harness.play()
    run = harness.run(run_id)
    assert (run.status, run.output, run.output_json) == (RunStatus.COMPLETED, LISBON, {"city": "Lisbon"})
    assert harness.roles() == ["user", "assistant", "user", "assistant"]
    *_, said, wish = harness.model.requests[1].messages
    assert (said.role, said.text, wish.role) == (Role.ASSISTANT, "Lisbon.", Role.USER)
    assert "not a JSON object" in wish.text
    assert [data["turn"] for data in harness.of_type(run_id, RunEventType.TURN_STARTED)] == [1, 2]
    assert run.usage.turns == 2
    assert_consistent(harness, run_id)


@pytest.mark.requirement("H3")
async def test_a_second_answer_that_does_not_match_fails_the_run_which_says_why() -> None:
    harness = a_harness(says("Lisbon."), says('{"city": 3}'))
    run_id = await harness.play()
    run = harness.run(run_id)
    assert (run.status, run.output, run.output_json) == (RunStatus.FAILED, '{"city": 3}', None)
    assert run.error is not None
    assert run.error.code == "output_invalid"
    assert '/city: 3 is not of type "string"' in run.error.detail
    assert harness.of_type(run_id, RunEventType.RUN_FAILED)[0]["error"] == {
        "code": "output_invalid",
        "detail": run.error.detail,
    }
    assert_consistent(harness, run_id)


@pytest.mark.requirement("H3")
async def test_a_retry_of_such_a_run_begins_with_another_repair_by_the_same_schema() -> None:
    harness = RunHarness([says("Lisbon."), says("Lisbon!"), says("Well."), says(LISBON)])
    failed = await harness.start(output_schema=SCHEMA)
    await harness.worker.execute(failed)
    retried = (await retry(harness, failed)).run
    await harness.worker.execute(retried.id)
    run = harness.run(retried.id)
    assert (run.status, run.output_json) == (RunStatus.COMPLETED, {"city": "Lisbon"})
    assert [request.messages[-1].role for request in harness.model.requests] == [Role.USER] * 4
    assert_consistent(harness, failed, retried.id)


@pytest.mark.requirement("H3")
async def test_the_model_may_call_tools_before_it_answers_and_while_it_repairs_but_repairs_once() -> None:
    harness = a_harness(asks(READ), says("Lisbon."), asks(READ), says("Lisbon!"), tools=True)
    run = harness.run(await harness.play())
    assert run.error is not None
    assert (run.error.code, run.usage.turns) == ("output_invalid", 4)


@pytest.mark.requirement("H3", "E4")
@pytest.mark.parametrize(("commits", "answers"), [(0, 2), (1, 2)])
async def test_a_crash_between_an_answer_and_its_repair_neither_loses_nor_repeats_the_repair(
    mocker: MockerFixture, commits: int, answers: int
) -> None:
    """The worker is lost before the answer is stored, or after."""
    harness = a_harness(says("Lisbon."), *[says("Lisbon.")] * (1 - commits), *[says(LISBON)] * answers)
    run_id = await harness.start()
    await crash_after(harness, mocker, commits)
    await harness.worker.execute(run_id)
    run = harness.run(run_id)
    assert (run.status, run.output_json, run.attempt) == (RunStatus.COMPLETED, {"city": "Lisbon"}, 2)
    assert harness.roles() == ["user", "assistant", "user", "assistant"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("H3", "A7")
@pytest.mark.parametrize(
    ("text", "status", "output"),
    [(LISBON, RunStatus.COMPLETED, {"city": "Lisbon"}), ("Lisbon!", RunStatus.FAILED, None)],
)
async def test_the_closing_turn_repairs_the_answer_of_the_last_turn(
    text: str, status: RunStatus, output: JsonObject | None
) -> None:
    harness = a_harness(says("Lisbon."), says(text), limits=LimitSettings(max_turns=1))
    run = harness.run(await harness.play())
    assert (run.status, run.output_json) == (status, output)


@pytest.mark.requirement("H3", "A7")
async def test_the_answer_of_a_closing_turn_has_its_object_beside_the_limit() -> None:
    harness = a_harness(asks(READ), says(LISBON), tools=True, limits=LimitSettings(max_turns=1))
    run = harness.run(await harness.play())
    assert (run.status, run.incomplete_reason, run.output_json) == (
        RunStatus.INCOMPLETE,
        IncompleteReason.MAX_TURNS,
        {"city": "Lisbon"},
    )


@pytest.mark.requirement("H3", "H2")
@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.REFUSAL, FinishReason.CONTENT_FILTER])
async def test_a_reply_that_is_no_whole_answer_is_not_repaired_and_its_reason_stays(reason: FinishReason) -> None:
    harness = a_harness(ModelTurn(text='{"city": "Lis', finish_reason=reason))
    run = harness.run(await harness.play())
    assert (run.status, run.incomplete_reason, run.output_json) == (
        RunStatus.INCOMPLETE,
        reason.incomplete_reason,
        None,
    )


@pytest.mark.requirement("H3", "H2")
async def test_a_paused_answer_is_checked_as_a_whole() -> None:
    harness = a_harness(ModelTurn(text='{"city": ', finish_reason=FinishReason.PAUSED), says('"Lisbon"}'))
    assert harness.run(await harness.play()).output_json == {"city": "Lisbon"}


@pytest.mark.requirement("H3")
async def test_later_runs_of_the_thread_are_repaired_for_themselves() -> None:
    harness = a_harness(says("Lisbon."), says(LISBON), says("Porto."), says('{"city": "Porto"}'))
    await harness.play()
    run = harness.run(await harness.play("And then?"))
    assert (run.status, run.output_json) == (RunStatus.COMPLETED, {"city": "Porto"})


@pytest.mark.requirement("H3", "E5")
async def test_a_rollback_takes_the_request_to_repair_back_with_its_run() -> None:
    gate = Gate()
    harness = a_harness(says("Lisbon."), ModelTurn(gate=gate), says(LISBON))
    first = await harness.start()
    executing = harness.worker.begin(first)
    await gate.reached.wait()
    second = await harness.start("Another question", strategy=MultitaskStrategy.ROLLBACK)
    await executing
    await harness.worker.execute(second)
    assert harness.run(first).status is RunStatus.CANCELLED
    assert [message.text for message in harness.model.requests[-1].messages] == ["Another question"]
    assert harness.run(second).output_json == {"city": "Lisbon"}


@pytest.mark.requirement("H3")
async def test_a_schema_that_the_agent_gets_in_mid_run_holds_from_the_next_turn() -> None:
    harness = RunHarness([asks(READ), says(LISBON)], servers=FILES)
    await harness.warm_up()
    run_id = await harness.start()
    harness.change_agent(output_schema=SCHEMA)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).output_json == {"city": "Lisbon"}
