"""Calls of the gateway that are held open until somebody decides about them; without HTTP, whose
test client waits for whole answers."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from application.approvals.decide_approval import DecideApprovalCommand
from application.approvals.ports import TIMERS_TOPIC, ApprovalFilter
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.clear_call import ApprovalWaits
from application.gateway.sessions.open_session import OpenGatewaySessionCommand
from application.gateway.sessions.revoke_session import RevokeGatewaySessionCommand
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from tests.builders import ORG, a_server, an_agent, an_audit_event, an_organization
from tests.composition import stores_of
from tests.contract.paging import all_of
from tests.doubles.mcp_connections import InMemoryMcpConnections, InMemoryMcpServer, InMemoryTool, text_reply
from tests.integration.http.service import a_service_container, known_keys
from tests.integration.http.tables import InMemoryTables

ECHO = "mcp__files__echo"
ADMIN = Principal(organization_id=ORG, key_id=ApiKeyId("key_admin"), role=Role.ADMIN)


@pytest.mark.requirement("C3", "F5")
@pytest.mark.parametrize("resumable", [True, False])
@pytest.mark.parametrize(
    ("how", "expected"), [("approve", None), ("deny", "approval_denied"), ("revoke", "approval_cancelled")]
)
async def test_a_held_call_is_answered_when_its_approval_ends(
    *, resumable: bool, how: str, expected: str | None
) -> None:
    tables = InMemoryTables()
    files = InMemoryMcpServer(tools={"echo": InMemoryTool(answer=text_reply("hi"))})
    async with tables.open([an_organization(ORG)], known_keys()), asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        container = a_service_container(
            tables,
            connections=InMemoryMcpConnections({"files": files}),
            approval_waits=ApprovalWaits(resumable_s=600.0, last_s=600.0),
        )
        stores = stores_of(container)
        await stores.servers.add(a_server(), an_audit_event(201))
        policies = ToolPolicies(rules=((ECHO, ToolRule(decision=Verdict.REQUIRE_APPROVAL)),))
        agent = an_agent(mcp_servers=("files",))
        agent = replace(agent, config=replace(agent.config, tool_policies=policies))
        await stores.agents.add(agent, an_audit_event(202))
        wanted = OpenGatewaySessionCommand(principal=ADMIN, agent="researcher", ttl_s=86_400)
        session = (await container.open_gateway_session().execute(wanted)).session
        call = CallGatewayToolCommand(session=session, name=ECHO, arguments={}, resumable=resumable)
        async with stores.wakeups.subscribe(TIMERS_TOPIC) as asked:
            held = tasks.create_task(container.call_gateway_tool().execute(call))
            assert await asked.wait(60)
        assert not held.done()
        [approval] = await all_of(partial(stores.approvals.page, ORG, ApprovalFilter()))

        if how == "revoke":
            revoke = RevokeGatewaySessionCommand(principal=ADMIN, session_id=session.id)
            await container.revoke_gateway_session().execute(revoke)
        else:
            word = DecideApprovalCommand(principal=ADMIN, approval_id=approval.id, approve=how == "approve")
            await container.decide_approval().execute(word)

        answer = await held
        assert (answer.result.error_code, answer.waiting) == (expected, None)
        assert answer.result.is_error is (expected is not None)


@pytest.mark.requirement("C3", "F5")
async def test_people_are_asked_for_no_more_calls_at_one_time_than_a_session_may_have_waiting() -> None:
    tables = InMemoryTables()
    files = InMemoryMcpServer(tools={"echo": InMemoryTool(answer=text_reply("hi"))})
    async with tables.open([an_organization(ORG)], known_keys()), asyncio.timeout(120):
        container = a_service_container(
            tables,
            connections=InMemoryMcpConnections({"files": files}),
            approval_waits=ApprovalWaits(resumable_s=0.0, last_s=0.0, most_waiting=2),
        )
        stores = stores_of(container)
        await stores.servers.add(a_server(), an_audit_event(201))
        policies = ToolPolicies(rules=((ECHO, ToolRule(decision=Verdict.REQUIRE_APPROVAL)),))
        agent = an_agent(mcp_servers=("files",))
        await stores.agents.add(
            replace(agent, config=replace(agent.config, tool_policies=policies)), an_audit_event(202)
        )
        wanted = OpenGatewaySessionCommand(principal=ADMIN, agent="researcher", ttl_s=86_400)
        session = (await container.open_gateway_session().execute(wanted)).session

        async def code_of(number: int) -> str | None:
            call = CallGatewayToolCommand(session=session, name=ECHO, arguments={"n": number})
            return (await container.call_gateway_tool().execute(call)).result.error_code

        waits, full = "approval_pending", "approvals_waiting"
        assert [await code_of(number) for number in (1, 2, 3, 1)] == [waits, waits, full, waits]
        approvals = await all_of(partial(stores.approvals.page, ORG, ApprovalFilter()))
        assert len(approvals) == 2
        word = DecideApprovalCommand(principal=ADMIN, approval_id=approvals[0].id, approve=False)
        await container.decide_approval().execute(word)
        assert await code_of(3) == waits
