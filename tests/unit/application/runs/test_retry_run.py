"""RetryRun: a failed run continues as a new one, from the last step that it has stored."""

from dataclasses import replace

import pytest

from application.models.ports import ModelError
from application.runs.new_run import StartedRun
from application.runs.retry_run import RetryRun, RetryRunCommand
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, RunId, WorkflowRunId
from domain.json_value import JsonValue
from domain.runs.events import RunEventType
from domain.runs.run import RunStatus
from domain.runs.webhook import WebhookNote
from domain.threads.attachments import MAX_ATTACHMENTS
from domain.threads.message import ImageContent
from domain.tools.client_tool import ClientTool
from domain.tools.state_tool import UPDATE_STATE
from domain.tools.wired import WiredNodes
from tests.builders import ORG, an_agent
from tests.doubles.mcp_connections import InMemoryMcpServer, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.refusals import refused
from tests.unit.application.runs.doubles import asks, call, says
from tests.unit.application.runs.harness import ADMIN, RunHarness

AWAY = ModelError("model_unavailable", "The model cannot be reached.", retryable=True)
RUNNER = Principal(organization_id=ORG, key_id=ApiKeyId("key_runner"), role=Role.RUNNER)


def retry_run(harness: RunHarness) -> RetryRun:
    return RetryRun(
        start_run=harness.start_run(),
        reader=harness.runs,
        agents=harness.agents,
        organizations=harness.organizations,
    )


async def retry(
    harness: RunHarness, run_id: RunId, *, principal: Principal = ADMIN, key: str | None = None
) -> StartedRun:
    harness.clock.advance(1)
    command = RetryRunCommand(principal=principal, run_id=run_id, idempotency_key=key)
    return await retry_run(harness).execute(command)


@pytest.mark.requirement("A11")
async def test_a_retry_continues_after_the_last_result_and_calls_nothing_again() -> None:
    server = InMemoryMcpServer(tools={"now": text_reply("Noon.")})
    harness = RunHarness([asks("mcp__time__now"), ModelTurn(error=AWAY)], servers={"time": server})
    failed = await harness.play()
    assert harness.run(failed).status is RunStatus.FAILED
    said_to_the_first = harness.model.requests[-1].messages
    harness.model.add(says("It is noon."))

    retried = (await retry(harness, failed)).run
    assert (retried.retry_of, retried.input, retried.usage.turns) == (failed, harness.run(failed).input, 0)
    assert harness.queue.run_ids[-1] == retried.id
    await harness.worker.execute(retried.id)

    assert harness.run(retried.id).status is RunStatus.COMPLETED
    assert harness.model.requests[-1].messages == said_to_the_first
    assert harness.roles() == ["user", "assistant", "tool", "assistant"]
    assert harness.server_calls() == ["now"]
    assert harness.types(retried.id)[:3] == ["run.queued", "run.started", "turn.started"]
    assert harness.run(failed).status is RunStatus.FAILED


@pytest.mark.requirement("X4")
async def test_a_retry_begins_with_the_state_of_the_front_end_as_the_failed_run_left_it() -> None:
    patch: JsonValue = [{"op": "replace", "path": "/a", "value": 2}]
    harness = RunHarness([ModelTurn(calls=(call(UPDATE_STATE, {"patch": patch}),)), ModelTurn(error=AWAY)])
    failed = await harness.start()
    stored = harness.state.runs[failed]
    stored.run = replace(stored.run, client_request={"message": "m1", "state": {"a": 1}})
    await harness.worker.execute(failed)
    assert (await retry(harness, failed)).run.client_request == {"message": "m1", "state": {"a": 2}}


async def test_a_retry_has_the_settings_and_the_webhook_of_the_failed_run() -> None:
    harness = RunHarness([ModelTurn(error=AWAY)])
    failed = await harness.play()
    stored = harness.state.runs[failed]
    note = WebhookNote(receiver="example.org", events=(RunEventType.RUN_COMPLETED,))
    stored.run = replace(stored.run, metadata={"order": 7}, tool_allowlist=("now",), webhook=note)
    weather = ClientTool(name="weather")
    stored.run = replace(stored.run, client_tools=(weather,), instructions="Be kind.", history_key="digest")
    stored.webhook_url = "https://example.org/hook"
    retried = (await retry(harness, failed)).run
    assert (retried.metadata, retried.tool_allowlist, retried.webhook) == ({"order": 7}, ("now",), note)
    assert (retried.client_tools, retried.instructions, retried.history_key) == ((weather,), "Be kind.", "digest")
    assert (retried.requested_by, retried.model) == (ADMIN.key_id, harness.agent.config.model)
    assert harness.state.runs[retried.id].webhook_url == "https://example.org/hook"


@pytest.mark.requirement("A11")
async def test_an_input_that_is_stored_from_before_the_bounds_is_retried() -> None:
    harness = RunHarness([ModelTurn(error=AWAY)])
    failed = await harness.play()
    stored = harness.state.runs[failed]
    pictures = (ImageContent(media_type="image/png", data="aGk="),) * (MAX_ATTACHMENTS + 1)
    stored.run = replace(stored.run, input=pictures)
    assert (await retry(harness, failed)).run.input == pictures


async def test_only_a_failed_run_is_retried() -> None:
    harness = RunHarness([says("Noon.")])
    completed = await harness.play()
    with refused("run_not_failed"):
        await retry(harness, completed)


async def test_a_run_that_its_thread_has_left_behind_is_not_retried() -> None:
    harness = RunHarness([ModelTurn(error=AWAY), ModelTurn(error=AWAY)])
    first = await harness.play()
    harness.clock.advance(1)
    second = await harness.play()
    with refused("run_not_newest"):
        await retry(harness, first)
    assert (await retry(harness, second)).run.retry_of == second


async def test_a_retry_that_failed_is_retried_itself() -> None:
    harness = RunHarness([ModelTurn(error=AWAY), ModelTurn(error=AWAY), says("Noon.")])
    failed = await harness.play()
    again = (await retry(harness, failed)).run.id
    await harness.worker.execute(again)
    with refused("run_not_newest"):
        await retry(harness, failed)
    last = (await retry(harness, again)).run.id
    await harness.worker.execute(last)
    assert (harness.run(last).status, harness.roles()) == (RunStatus.COMPLETED, ["user", "assistant"])


async def test_the_same_idempotency_key_gives_the_same_retry() -> None:
    harness = RunHarness([ModelTurn(error=AWAY)])
    failed = await harness.play()
    first = await retry(harness, failed, key="once")
    second = await retry(harness, failed, key="once")
    assert (first.created, second.created, second.run.id) == (True, False, first.run.id)


async def test_a_runner_retries_its_own_runs_only() -> None:
    harness = RunHarness([ModelTurn(error=AWAY)])
    failed = await harness.play()
    with refused("run_not_yours"):
        await retry(harness, failed, principal=RUNNER)
    stored = harness.state.runs[failed]
    stored.run = replace(stored.run, requested_by=RUNNER.key_id)
    assert (await retry(harness, failed, principal=RUNNER)).run.requested_by == RUNNER.key_id


async def test_a_step_of_a_workflow_is_not_retried_apart_from_it() -> None:
    harness = RunHarness([ModelTurn(error=AWAY)])
    failed = await harness.play()
    stored = harness.state.runs[failed]
    wired = WiredNodes(workflow_run_id=WorkflowRunId("wfr_1"), node_ids=("a",))
    stored.run = replace(stored.run, wired=wired)
    with refused("run_of_workflow"):
        await retry(harness, failed)


async def test_a_retry_has_the_agents_model_if_that_of_the_run_is_no_longer_listed() -> None:
    agent = an_agent(model="scripted:old.yaml")
    harness = RunHarness([ModelTurn(error=AWAY)], agent=agent)
    failed = await harness.play()
    harness.change_agent(model="scripted:new.yaml")
    assert (await retry(harness, failed)).run.model == "scripted:new.yaml"


async def test_there_is_no_retry_of_what_there_is_not() -> None:
    with refused("run_not_found"):
        await retry(RunHarness(), RunId("run_none"))
