"""The contract of all stores about who sees what belongs to the thread of a team."""

from dataclasses import replace
from functools import partial

import pytest

from application.approvals.ports import ApprovalFilter
from application.audit.ports import AuditFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.ids import AuditEventId, GatewaySessionId, WorkflowId, WorkflowRunId
from domain.teams import Teams
from domain.workflows.graph import Workflow
from tests.builders import ORG, START, a_server, a_thread, a_thread_id, an_agent, an_audit_event, numbered
from tests.contract.stores import Stores
from tests.contract.test_gateway import OWN_THREAD, SESSION, a_session, created
from tests.contract.test_gateway_approvals import asked
from tests.group_builders import a_group
from tests.schedule_builders import a_schedule, a_schedule_id, made
from tests.workflow_builders import a_workflow_run, entrypoint, workflow

pytestmark = pytest.mark.requirement("P2")

TEAM = "finance"
INSIDERS: Teams = frozenset({TEAM})
OUTSIDERS: Teams = frozenset({"sales"})
FINANCE = a_group(TEAM)
GROUP_MADE = an_audit_event(91, action=AuditAction.GROUP_CREATED)
OF_TEAM = Workflow(
    id=WorkflowId(numbered("wfl", 1)),
    organization_id=ORG,
    version=1,
    definition=workflow(entrypoint(), name="report", team=TEAM),
    created_at=START,
    updated_at=START,
)
RUN_OF_TEAM = replace(
    a_workflow_run(id=WorkflowRunId(numbered("wfr", 1)), team=TEAM), workflow_id=OF_TEAM.id, created_at=START
)


@pytest.fixture
async def of_team(stores: Stores) -> Stores:
    """An agent of the organization has two sessions: on a thread of a team, and on one of the
    organization."""
    await stores.agents.add(an_agent(), an_audit_event(90, action=AuditAction.AGENT_CREATED))
    await stores.gateway_sessions.add(a_session(), created(), thread=replace(OWN_THREAD, team=TEAM))
    other = a_session(2, thread_id=a_thread_id(2))
    await stores.gateway_sessions.add(other, created(2), thread=a_thread(a_thread_id(2)))
    return stores


async def test_a_session_is_seen_with_its_thread(of_team: Stores) -> None:
    sessions = of_team.gateway_sessions
    read = await sessions.get(ORG, SESSION, teams=INSIDERS)
    assert read is not None
    assert read.team == TEAM
    assert await sessions.get(ORG, SESSION, teams=OUTSIDERS) is None
    by_token = await sessions.by_token_hash("hash-1")
    assert by_token == read
    page = await sessions.page(ORG, PageRequest(teams=OUTSIDERS))
    assert [session.team for session in page.items] == [None]
    assert len((await sessions.page(ORG, PageRequest(teams=INSIDERS))).items) == 2


async def test_an_approval_of_a_gateway_call_is_seen_with_the_thread_of_its_session(of_team: Stores) -> None:
    waiting = (await asked(of_team)).approval
    approvals = of_team.approvals
    assert await approvals.get(ORG, waiting.id, teams=INSIDERS) == waiting
    assert await approvals.get(ORG, waiting.id, teams=OUTSIDERS) is None
    assert (await approvals.page(ORG, ApprovalFilter(), PageRequest(teams=OUTSIDERS))).items == ()
    assert (await approvals.page(ORG, ApprovalFilter(), PageRequest(teams=INSIDERS))).items == (waiting,)


async def test_a_schedule_is_seen_with_its_agent_and_its_thread(of_team: Stores) -> None:
    schedule = a_schedule(thread_id=OWN_THREAD.id)
    await of_team.schedules.add(schedule, made())
    await of_team.schedules.add(a_schedule(a_schedule_id(2), name="daily"), made(2))
    schedules = of_team.schedules
    assert await schedules.find(ORG, schedule.id, teams=INSIDERS) == schedule
    assert await schedules.find(ORG, schedule.id, teams=OUTSIDERS) is None
    assert await schedules.find(ORG, schedule.name, teams=OUTSIDERS) is None
    seen = await schedules.page(ORG, PageRequest(teams=OUTSIDERS))
    assert [each.name for each in seen.items] == ["daily"]
    assert len((await schedules.page(ORG, PageRequest(teams=INSIDERS))).items) == 2


async def test_a_group_owns_its_workflows_and_what_their_runs_did(stores: Stores) -> None:
    groups, gone = stores.organization_groups, an_audit_event(92, action=AuditAction.GROUP_DELETED)
    await groups.add(FINANCE, GROUP_MADE)
    await stores.workflows.add(OF_TEAM, an_audit_event(93, action=AuditAction.WORKFLOW_CREATED))
    await stores.workflow_runs.start(RUN_OF_TEAM, an_audit_event(94, action=AuditAction.WORKFLOW_RUN_STARTED))
    with pytest.raises(ServiceError, match=rf"report.*{RUN_OF_TEAM.id}") as refused:
        await groups.delete(ORG, FINANCE.id, gone)
    assert refused.value.code == "group_owns"
    await stores.workflows.delete(ORG, OF_TEAM.id, an_audit_event(95, action=AuditAction.WORKFLOW_DELETED))
    with pytest.raises(ServiceError, match=RUN_OF_TEAM.id) as refused:
        await groups.delete(ORG, FINANCE.id, gone)
    assert "report" not in refused.value.detail


async def test_entries_about_a_workflow_its_runs_and_their_calls_are_seen_with_them(stores: Stores) -> None:
    await stores.organization_groups.add(FINANCE, GROUP_MADE)
    common = replace(OF_TEAM, id=WorkflowId(numbered("wfl", 2)), definition=workflow(entrypoint(), name="common"))
    run = replace(RUN_OF_TEAM, id=WorkflowRunId(numbered("wfr", 2)), workflow_id=common.id, team=None)
    step = partial(an_audit_event, action=AuditAction.TOOL_EXECUTED, resource=numbered("call", 1))
    for number, (stored, begun) in enumerate(((OF_TEAM, RUN_OF_TEAM), (common, run))):
        await stores.workflows.add(
            stored, an_audit_event(40 + number, action=AuditAction.WORKFLOW_CREATED, resource=stored.id)
        )
        started = an_audit_event(50 + number, action=AuditAction.WORKFLOW_RUN_STARTED, resource=begun.id)
        await stores.workflow_runs.start(begun, started)
        await stores.audit.record(step(60 + number, details={"workflow_run_id": begun.id, "node_id": "call"}))
    await stores.audit.record(step(62, details={"workflow_run_id": numbered("wfr", 9)}))

    async def numbers(teams: Teams) -> list[str]:
        page = await stores.audit.page(ORG, AuditFilter(teams=teams), PageRequest(limit=100))
        return sorted(entry.id for entry in page.items if entry.id != GROUP_MADE.id)

    assert await numbers(OUTSIDERS) == [numbered("aud", number) for number in (41, 51, 61)]
    assert await numbers(INSIDERS) == [numbered("aud", number) for number in (40, 41, 50, 51, 60, 61)]
    assert len(await numbers(None)) == 7


async def test_an_entry_is_seen_only_if_what_it_is_about_is_known_and_seen(of_team: Stores) -> None:
    theirs, common = {"gateway_session_id": SESSION}, {"gateway_session_id": numbered("gws", 2)}
    # A text that looks like the key of a session, and one that PostgreSQL does not take in JSON.
    sly = {"reason": '\x00","gateway_session_id":"' + numbered("gws", 2) + '"', **theirs}
    gone = {"gateway_session_id": GatewaySessionId(numbered("gws", 99))}
    await of_team.schedules.add(a_schedule(thread_id=OWN_THREAD.id), made(50))
    call = partial(an_audit_event, resource=numbered("call", 1))
    hidden = (
        call(11, action=AuditAction.TOOL_EXECUTED, details={**theirs}),
        call(12, action=AuditAction.TOOL_APPROVED, details={"approval_id": "apr_1", "edited": False, **theirs}),
        call(13, action=AuditAction.TOOL_DENIED, details={**sly}),
        an_audit_event(14, action=AuditAction.SESSION_HALTED, resource=SESSION),
        an_audit_event(15, action=AuditAction.SCHEDULE_UPDATED, resource=a_schedule_id(1)),
    )
    unknown = (
        call(21, action=AuditAction.TOOL_EXECUTED, details={**gone}),
        call(22, action=AuditAction.TOOL_EXECUTED),
        call(25, action=AuditAction.TOOL_EXECUTED, details={"workflow_run_id": numbered("wfr", 1)}),
        an_audit_event(26, action=AuditAction.WORKFLOW_RUN_COMPLETED, resource=numbered("wfr", 1)),
        an_audit_event(23, action=AuditAction.PUSH_CONFIG_CREATED, resource="mine"),
        an_audit_event(24, action=AuditAction.WEBHOOK_DELIVERY_RETRIED, resource=numbered("whk", 1)),
    )
    seen = (
        call(31, action=AuditAction.TOOL_EXECUTED, details={**common}),
        an_audit_event(33, action=AuditAction.SECRET_SET, resource="TOKEN"),
        an_audit_event(34, action=AuditAction.RUNS_CANCELLED, resource=ORG),
        an_audit_event(35, action=AuditAction.SESSION_ENDED, resource="css_1"),
    )
    for entry in (*hidden, *unknown, *seen):
        await of_team.audit.record(entry)

    async def numbers(teams: Teams) -> set[AuditEventId]:
        page = await of_team.audit.page(ORG, AuditFilter(teams=teams), PageRequest(limit=100))
        return {entry.id for entry in page.items} & {entry.id for entry in (*hidden, *unknown, *seen)}

    assert await numbers(OUTSIDERS) == {entry.id for entry in seen}
    assert await numbers(INSIDERS) == {entry.id for entry in (*hidden, *seen)}
    assert len(await numbers(None)) == len((*hidden, *unknown, *seen))


async def test_the_trail_stays_closed_when_the_last_thing_of_a_team_is_deleted(stores: Stores) -> None:
    server = a_server()
    created = an_audit_event(1, action=AuditAction.MCP_SERVER_CREATED, resource=server.id, server_id=server.id)
    deleted = an_audit_event(2, action=AuditAction.MCP_SERVER_DELETED, resource=server.id, server_id=server.id)
    await stores.organization_groups.add(FINANCE, GROUP_MADE)

    async def seen(teams: Teams) -> set[AuditEventId]:
        page = await stores.audit.page(ORG, AuditFilter(teams=teams), PageRequest())
        return {entry.id for entry in page.items} & {created.id, deleted.id}

    await stores.servers.add(replace(server, config=replace(server.config, team=TEAM)), created)
    assert (await seen(OUTSIDERS), await seen(INSIDERS)) == (set(), {created.id})
    assert await stores.servers.delete(ORG, server.id, deleted)
    assert (await seen(OUTSIDERS), await seen(INSIDERS)) == (set(), set())
    assert await seen(None) == {created.id, deleted.id}
