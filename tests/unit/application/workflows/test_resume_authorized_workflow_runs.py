"""ResumeAuthorizedWorkflowRuns: workflow runs that wait until their person connects an account, and
continue on any worker."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from application.mcp.authorization import Account
from application.workflows.node_execution import AwaitsAnswer
from application.workflows.resume_authorized_workflow_runs import REREAD_S
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.ids import ApiKeyId, RunId, UserId
from domain.mcp.server import Credentials
from domain.workflows.account_wait import ACCEPT, DECLINE, AccountWait
from domain.workflows.execution import NodeStatus
from domain.workflows.run import WorkflowEventType, WorkflowRunStatus
from tests.builders import ORG
from tests.doubles.authorizer import ISSUER
from tests.doubles.surroundings import START
from tests.mcp_builders import PERSON_SERVER, a_person_server
from tests.people_builders import USER
from tests.refusals import refused, storage_away
from tests.unit.application.workflows.workflow_harness import RUN, STARTED, WorkflowHarness
from tests.workflow_builders import entrypoint, node
from tests.workflow_changes import answer_run, stop_run

pytestmark = pytest.mark.requirement("P3", "F4")
OTHER = UserId("usr_other")
LINK = "https://agents.example/console/accounts?server=tickets"
FIND = node("find", "mcp_server", server="tickets", call="search")
SLOW = node("slow", "http_request", url="https://a.example")


def lacks_account(*, due_s: float | None = None) -> AwaitsAnswer:
    asked = AccountWait(server_id=PERSON_SERVER, since=START).question("Connect it.", LINK)
    return AwaitsAnswer(asked=asked, due_at=None if due_s is None else START + timedelta(seconds=due_s))


async def a_harness(*parts: object, due_s: float | None = None) -> WorkflowHarness:
    """The node `find` lacks the account of the person who started the run, until it is
    connected."""
    harness = WorkflowHarness(entrypoint(), FIND, "start -> find", *parts)  # type: ignore[arg-type]
    harness.state.servers[PERSON_SERVER] = a_person_server()
    harness.told.outcomes["find"] = [lacks_account(due_s=due_s), "found"]
    await harness.start(requested_by=ApiKeyId(USER))
    return harness


async def a_waiting_harness(*, due_s: float | None = None) -> WorkflowHarness:
    harness = await a_harness(due_s=due_s)
    assert (await harness.advance()).status is WorkflowRunStatus.REQUIRES_ACTION
    return harness


def connect(harness: WorkflowHarness, person_id: UserId = USER) -> None:
    """The account is stored; what waits has not been continued."""
    account = Account(issuer=ISSUER, scope=None, renewed_at=harness.clock.now())
    harness.authorizer.accounts[PERSON_SERVER, person_id] = account


async def connected(harness: WorkflowHarness, person_id: UserId = USER) -> None:
    connect(harness, person_id)
    await harness.accounts.connected(a_person_server().acting_for(person_id))


async def types(harness: WorkflowHarness) -> list[WorkflowEventType]:
    return [event.type for event in await harness.events()]


async def test_a_run_that_lacks_an_account_waits_and_says_where_it_is_connected() -> None:
    harness = await a_waiting_harness()
    (waiting,) = (await harness.run()).waiting_nodes
    assert (waiting.node_id, waiting.attempt) == ("find", 1)
    last = (await harness.events())[-1]
    assert last.type is WorkflowEventType.REQUIRES_ACTION
    assert last.data == {"pending": [{"node_id": "find", "run_id": None, "asked": lacks_account().asked}]}
    assert isinstance(waiting.asked, dict)
    assert waiting.asked["url"] == LINK


async def test_the_connected_account_continues_the_run_with_the_same_attempt_on_any_worker() -> None:
    harness = await a_waiting_harness()
    before = len(await types(harness))
    harness.clock.advance(60)
    await connected(harness)
    assert harness.queue.run_ids == [RunId(RUN)]
    run = await harness.advance()
    assert (run.status, run.output, run.nodes["find"].attempt) == (WorkflowRunStatus.COMPLETED, "found", 1)
    assert harness.told.executed.count("find") == 2
    assert (await types(harness))[before:] == [
        WorkflowEventType.RESUMED,
        WorkflowEventType.NODE_RESUMED,
        WorkflowEventType.NODE_STARTED,
        WorkflowEventType.NODE_SUCCEEDED,
        WorkflowEventType.COMPLETED,
    ]
    resumed = [each for each in harness.state.audit.values() if each.action is AuditAction.WORKFLOW_RUN_RESUMED]
    assert [(each.actor, each.details) for each in resumed] == [(USER, {"nodes": ["find"]})]


async def test_the_account_of_another_person_or_another_server_continues_nothing() -> None:
    harness = await a_waiting_harness()
    await connected(harness, OTHER)
    await harness.accounts.connected(replace(a_person_server(), id="mcp_other").acting_for(USER))  # type: ignore[arg-type]
    await harness.accounts.connected(a_person_server(Credentials.ORGANIZATION))
    assert harness.queue.run_ids == []
    assert (await harness.run()).status is WorkflowRunStatus.REQUIRES_ACTION


async def test_an_account_that_was_connected_while_the_run_was_suspended_continues_it_at_once() -> None:
    harness = await a_harness()
    connect(harness)
    run = await harness.advance()
    assert (run.status, harness.queue.run_ids) == (WorkflowRunStatus.QUEUED, [RunId(RUN)])
    assert (await harness.advance()).output == "found"


async def test_an_account_that_was_renewed_for_a_call_that_is_refused_again_continues_nothing_at_once() -> None:
    harness = await a_harness()
    again = AccountWait(server_id=PERSON_SERVER, since=START, number=2).question("Connect it.", LINK)
    harness.told.outcomes["find"] = [lacks_account(), AwaitsAnswer(asked=again, due_at=None), "found"]
    connect(harness)
    assert (await harness.advance()).status is WorkflowRunStatus.QUEUED
    assert (await harness.advance()).status is WorkflowRunStatus.REQUIRES_ACTION
    await connected(harness)  # the person connects it anew
    assert (await harness.advance()).output == "found"


async def test_an_account_is_noticed_while_other_branches_are_under_way() -> None:
    harness = await a_harness(SLOW, "start -> slow")
    harness.told.hold("slow")
    working = asyncio.create_task(harness.worker().execute(RUN))
    await asyncio.wait_for(harness.told.begun["slow"].wait(), 5)
    async with harness.wakeups.subscribe(f"workflow.events:{RUN}") as signal:
        while WorkflowEventType.NODE_WAITING not in await types(harness):
            assert await signal.wait(REREAD_S)
        connect(harness)
        topic = f"account:{ORG}:{PERSON_SERVER}:{USER}"
        while await harness.status("find") is not NodeStatus.SUCCEEDED:
            harness.wakeups.wake(topic)
            await signal.wait(REREAD_S)
    harness.told.held["slow"].set()
    await asyncio.wait_for(working, 5)
    assert (await harness.run()).output == {"find": "found", "slow": "slow!"}


async def test_a_worker_that_is_killed_while_the_run_continues_repeats_nothing_that_waited() -> None:
    harness = await a_waiting_harness()
    await connected(harness)
    await harness.killed_at(1, before=True)  # the call is about to be sent
    run = await harness.advance()
    assert (run.status, run.output, run.nodes["find"].attempt) == (WorkflowRunStatus.COMPLETED, "found", 1)
    assert harness.told.executed.count("start") <= 1


async def test_a_person_who_declines_fails_the_node() -> None:
    harness = await a_waiting_harness()
    await answer_run(harness.runs, ORG, RUN, {"find": DECLINE}, at=harness.clock.now(), audit=STARTED)
    run = await harness.advance()
    assert run.error is not None
    assert (run.status, run.error.code) == (WorkflowRunStatus.FAILED, "account_declined")


async def test_a_person_who_accepts_has_the_call_made_and_is_asked_again_without_the_account() -> None:
    harness = await a_waiting_harness()
    harness.told.outcomes["find"] = [lacks_account(), "found"]
    await answer_run(harness.runs, ORG, RUN, {"find": ACCEPT}, at=harness.clock.now(), audit=STARTED)
    run = await harness.advance()
    assert (run.status, run.nodes["find"].attempt) == (WorkflowRunStatus.REQUIRES_ACTION, 1)


async def test_a_run_that_waits_for_an_account_is_cancelled_at_once() -> None:
    harness = await a_waiting_harness()
    await stop_run(harness.runs, ORG, RUN, actor=USER, at=harness.clock.now(), audit=STARTED)
    assert (await harness.run()).status is WorkflowRunStatus.CANCELLED
    await connected(harness)
    assert harness.queue.run_ids == []


async def test_the_time_of_the_node_bounds_the_wait() -> None:
    harness = await a_waiting_harness(due_s=60)
    assert (await harness.run()).wake_at == START + timedelta(seconds=60)
    harness.clock.advance(60)
    run = await harness.advance()
    assert run.error is not None
    assert (run.status, run.error.code) == (WorkflowRunStatus.FAILED, "node_timeout")


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_node_whose_server_uses_no_accounts_of_persons_any_more_need_not_wait(is_gone: bool) -> None:
    harness = await a_waiting_harness()
    if is_gone:
        del harness.state.servers[PERSON_SERVER]
    else:
        harness.state.servers[PERSON_SERVER] = a_person_server(Credentials.ORGANIZATION)
    wait = AccountWait(server_id=PERSON_SERVER, since=START)
    assert await harness.accounts.is_connected(await harness.run(), wait)


async def test_a_run_that_changed_meanwhile_is_left_and_storage_that_is_away_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = await a_waiting_harness()

    async def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(harness.runs, "change", fails)
    error = ServiceError("workflow_run_not_waiting", storage_away().kind, "It continued.")
    await connected(harness)
    assert harness.queue.run_ids == []
    error = storage_away()
    with refused(error.code):
        await connected(harness)
