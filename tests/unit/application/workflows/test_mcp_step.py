"""Calls of MCP servers' tools as steps: what they put out, what decides about them, and what the
trail says."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from application.mcp.ports import McpFailure, McpFailureKind, McpReply
from application.tools.check_tool_call import CheckToolCall
from application.workflows.mcp_step import McpStep
from application.workflows.node_execution import AwaitsAnswer, NodeContext, NodeFailed, Succeeded
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import ApiKeyId, WorkflowRunId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import MAX_ROUNDS
from domain.mcp.server import McpServer
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.workflows.account_wait import AccountWait, account_wait_of
from domain.workflows.execution import NodeRun, NodeStatus
from infrastructure.expressions.jmespath_expressions import JmesPathExpressions
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import KEY, ORG, START, after, an_organization
from tests.doubles.mcp_connections import Answer, InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.surroundings import FixedClock
from tests.mcp_builders import a_person_server
from tests.people_builders import USER
from tests.unit.application.workflows.test_tool_step import Harness, no_run
from tests.workflow_builders import entrypoint, node, planned

RUN = WorkflowRunId("wfr_1")
SEARCH = "mcp__files__search"
SCHEMA: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Desk:
    """A server `files` with one tool, and a step that calls it."""

    def __init__(self) -> None:
        self.harness = Harness()
        self.noted: list[AuditEvent] = []

    async def answering(self, answer: Answer) -> "Desk":
        await self.harness.server("files", "search")
        tool = InMemoryTool(answer=answer, input_schema=SCHEMA)
        self.harness.connections.servers["files"] = InMemoryMcpServer(tools={"search": tool})
        return self

    def under(self, rule: ToolRule) -> None:
        rules = ToolPolicies(rules=((SEARCH, rule),))
        self.harness.state.organizations[ORG] = replace(an_organization(ORG), tool_policies=rules)

    def of_person(self) -> McpServer:
        """The server is used with the account of each person."""
        [server] = self.harness.state.servers.values()
        config = replace(a_person_server().config, slug="files")
        self.harness.state.servers[server.id] = server = replace(server, config=config)
        return server

    async def step(self, given: JsonValue = "bells", **settings: object) -> Succeeded | AwaitsAnswer:
        return await self.step_beside({}, given=given, settings=settings)

    async def step_beside(
        self,
        others: Mapping[str, NodeRun],
        *,
        attempt: int = 1,
        given: JsonValue = "bells",
        settings: Mapping[str, object] = MappingProxyType({}),
        requested_by: ApiKeyId = KEY,
        asked: JsonValue = None,
        team: str | None = None,
    ) -> Succeeded | AwaitsAnswer:
        """The step `find`, in a workflow whose `others` call the same tool."""
        config: dict[str, object] = {
            "server": "files",
            "call": "search",
            "arguments": {"text": "{{start}}"},
            **settings,
        }
        steps = [node(name, "mcp_server", **config) for name in ("find", *others)]
        plan = planned(entrypoint(), *steps, *(f"start -> {step.id}" for step in steps))
        context = NodeContext(
            organization_id=ORG,
            workflow_run_id=RUN,
            requested_by=requested_by,
            run_input=given,
            nodes={"start": NodeRun(node_id="start", status=NodeStatus.SUCCEEDED, output=given), **others},
            plan=plan,
            team=team,
            note_run=no_run,
            note_audit=self.noted.append,
        )
        step = McpStep(
            catalog=self.harness.catalog,
            check=CheckToolCall(schemas=JsonSchemaValidator()),
            execute=self.harness.execute,
            expressions=JmesPathExpressions(),
            clock=FixedClock(),
        )
        return await step.execute(
            plan.by_id["find"], NodeRun(node_id="find", attempt=attempt, started_at=after(60), asked=asked), context
        )

    async def failure(self, given: JsonValue = "bells", **settings: object) -> tuple[str, bool]:
        with pytest.raises(NodeFailed) as failed:
            await self.step(given, **settings)
        return failed.value.error.code, failed.value.error.retryable


@pytest.mark.requirement("C5", "F4")
async def test_a_call_puts_out_what_the_server_answered_and_is_audited() -> None:
    desk = await Desk().answering(text_reply("found", structured={"hits": 3}))
    assert await desk.step() == Succeeded(output={"text": "found", "structured": {"hits": 3}})
    (call,) = desk.harness.connections.calls
    assert call.call.arguments == {"text": "bells"}
    (entry,) = desk.noted
    assert (entry.action, entry.actor, entry.tool) == (AuditAction.TOOL_EXECUTED, KEY, SEARCH)
    assert (entry.details["workflow_run_id"], entry.details["node_id"]) == (RUN, "find")


@pytest.mark.requirement("A9", "F4")
async def test_arguments_that_do_not_fit_are_not_sent() -> None:
    desk = await Desk().answering(text_reply("found"))
    assert await desk.failure(["bells"]) == ("tool_arguments_invalid", False)
    assert desk.harness.connections.calls == []
    assert [entry.action for entry in desk.noted] == [AuditAction.TOOL_FAILED]


@pytest.mark.requirement("C2", "F4")
@pytest.mark.parametrize("verdict", [Verdict.DENY, Verdict.REQUIRE_APPROVAL])
async def test_what_the_organization_does_not_let_through_is_not_sent(verdict: Verdict) -> None:
    desk = await Desk().answering(text_reply("found"))
    desk.under(ToolRule(decision=verdict))
    code, retryable = await desk.failure()
    assert not retryable
    assert (code == "approval_required") is (verdict is Verdict.REQUIRE_APPROVAL)
    assert desk.harness.connections.calls == []
    assert [entry.action for entry in desk.noted] == [AuditAction.TOOL_BLOCKED]


@pytest.mark.requirement("C2", "F4", "S5")
async def test_more_calls_than_allowed_are_made_neither_by_more_steps_nor_by_more_attempts() -> None:
    desk = await Desk().answering(text_reply("found"))
    desk.under(ToolRule(max_calls=1))
    done = NodeRun(node_id="other", status=NodeStatus.SUCCEEDED, attempt=1, started_at=after(1))
    at_once = NodeRun(node_id="also", status=NodeStatus.RUNNING, attempt=1, started_at=after(60))
    cases: list[tuple[dict[str, NodeRun], int]] = [({"other": done}, 1), ({"also": at_once}, 1), ({}, 2)]
    for others, attempt in cases:
        with pytest.raises(NodeFailed) as failed:
            await desk.step_beside(others, attempt=attempt)
        assert not failed.value.error.retryable
    assert desk.harness.connections.calls == []
    assert [entry.details["decision"]["reason"] for entry in desk.noted] == ["max_calls_reached"] * 3  # type: ignore[index, call-overload]
    later = NodeRun(node_id="later", status=NodeStatus.RUNNING, attempt=1, started_at=after(61))
    await desk.step_beside({"later": later})
    assert len(desk.harness.connections.calls) == 1


@pytest.mark.requirement("F4")
async def test_a_failed_call_is_tried_again_only_if_that_does_no_harm() -> None:
    desk = await Desk().answering(McpFailure(McpFailureKind.TIMEOUT, "Nobody answered."))
    assert await desk.failure() == ("mcp_timeout", False)
    assert await desk.failure(idempotent=True) == ("mcp_timeout", True)


@pytest.mark.requirement("F4")
async def test_a_server_or_tool_that_is_not_there_is_named() -> None:
    desk = await Desk().answering(text_reply("found"))
    assert (await desk.failure(call="burn"))[0] == "mcp_tool_not_found"
    assert (await desk.failure(server="nowhere"))[0] == "mcp_server_unavailable"
    assert desk.noted == []


@pytest.mark.requirement("P3", "F4")
@pytest.mark.parametrize("timeout_s", [None, 60.0])
async def test_a_call_that_lacks_the_account_of_who_started_the_run_waits_for_it(timeout_s: float | None) -> None:
    desk = await Desk().answering(McpFailure(McpFailureKind.NEEDS_AUTH, "None has been granted yet."))
    server = desk.of_person()
    settings = {} if timeout_s is None else {"timeout_s": timeout_s}
    waits = await desk.step_beside({}, settings=settings, requested_by=ApiKeyId(USER))
    assert isinstance(waits, AwaitsAnswer)
    assert waits.due_at == (None if timeout_s is None else after(timeout_s))
    assert account_wait_of(waits.asked) == AccountWait(server_id=server.id, since=START, due_at=waits.due_at)
    assert isinstance(waits.asked, dict)
    assert str(waits.asked["url"]).endswith("/console/accounts?server=files")
    assert desk.noted == []  # nothing was sent

    with pytest.raises(NodeFailed) as failed:
        await desk.step_beside({})
    assert failed.value.error.code == "person_required"


@pytest.mark.requirement("P3", "F4")
async def test_a_server_that_refuses_every_account_is_asked_a_bounded_number_of_times_within_the_first_time() -> None:
    desk = await Desk().answering(McpFailure(McpFailureKind.NEEDS_AUTH, "It was withdrawn."))
    server = desk.of_person()
    first = AccountWait(server_id=server.id, since=after(-90), due_at=after(-30))
    asked: JsonValue = first.question("Connect it.", "")
    for number in range(2, MAX_ROUNDS + 1):
        waits = await desk.step_beside({}, settings={"timeout_s": 60.0}, requested_by=ApiKeyId(USER), asked=asked)
        assert isinstance(waits, AwaitsAnswer)
        assert account_wait_of(waits.asked) == replace(first, since=START, number=number)
        assert waits.due_at == first.due_at
        asked = waits.asked
    with pytest.raises(NodeFailed) as failed:
        await desk.step_beside({}, requested_by=ApiKeyId(USER), asked=asked)
    assert (failed.value.error.code, failed.value.error.retryable) == ("mcp_input_endless", False)


@pytest.mark.requirement("C5", "F4")
async def test_a_call_that_is_cut_short_is_audited_as_unknown() -> None:
    asked = asyncio.Event()

    async def never(invocation: Invocation) -> McpReply:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody lets it go on")

    desk = await Desk().answering(never)
    calling = asyncio.create_task(desk.step())
    await asyncio.wait_for(asked.wait(), 5)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert [(entry.action, entry.details["error"]) for entry in desk.noted] == [
        (AuditAction.TOOL_FAILED, "outcome_unknown")
    ]
