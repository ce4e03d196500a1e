"""ReadGatewayContent: what of a server's resources, prompts and completions a client is given."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.contents.content_sources import ContentSources, Sources
from application.gateway.contents.read_content import ReadGatewayContent, ReadGatewayContentCommand
from application.gateway.ports import GatewayLedger
from application.gateway.sessions.halt_session import HaltGatewaySession
from application.mcp.contents import ContentMethod, ContentRequest, McpContents
from application.mcp.ports import McpFailure, McpFailureKind
from application.tools.check_tool_call import CheckToolCall
from domain.audit.event import AuditAction
from domain.errors import conflict
from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.gateway.session import ToolNames
from domain.json_value import JsonObject
from domain.mcp.behavior import ElicitationPolicy
from domain.policy.rules import ToolRule, Verdict
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import a_server
from tests.doubles.gateway import InMemoryGatewayLedger
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.gateway_builders import CANARY, a_gateway_session, a_gateway_toolset, a_state_with
from tests.refusals import refused, storage_away

SESSION, SERVER = a_gateway_session(), a_server()
URI, RESOURCES = "mcp+files:file:///notes", "mcp__files__resources"
NOTES: JsonObject = {"contents": [{"uri": "file:///notes", "text": "Buy milk."}]}
COMPLETION: JsonObject = {
    "ref": {"type": "ref/resource", "uri": URI},
    "argument": {"name": "path", "value": "no"},
}


class Ports:
    """A session that may read the resources of the server `files`, over a ledger in memory."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.sources: MockType = mocker.create_autospec(ContentSources, instance=True)
        self.sources.owner_of_uri.return_value = (SERVER, "file:///notes")
        self.sources.owner_of_prompt.return_value = (SERVER, "greet")
        self.contents: MockType = mocker.create_autospec(McpContents, instance=True)
        self.contents.ask.return_value = NOTES
        self.halting: MockType = mocker.create_autospec(HaltGatewaySession, instance=True)
        self.halting.execute.return_value = conflict("gateway_session_halted", "The session was halted.")
        self.state: InMemoryState = a_state_with(SESSION)
        self.ledger: GatewayLedger = InMemoryGatewayLedger(self.state)
        self.rules()

    def rules(self, **rules: ToolRule) -> None:
        """Policy says this; the agent has a canary token."""
        tools = a_gateway_toolset(rules=rules, canary=True)
        self.sources.of.return_value = Sources(session=SESSION, tools=tools, servers=(SERVER,))

    async def read(
        self, method: ContentMethod = ContentMethod.READ_RESOURCE, params: JsonObject | None = None, **more: Any
    ) -> Mapping[str, object]:
        reading = ReadGatewayContent(
            sources=self.sources,
            contents=self.contents,
            check=CheckToolCall(schemas=JsonSchemaValidator()),
            ledger=self.ledger,
            halting=self.halting,
            clock=FixedClock(),
            ids=SequentialIds(),
        )
        command: dict[str, Any] = {"session": SESSION, "method": method, "params": params or {"uri": URI}}
        return await reading.execute(ReadGatewayContentCommand(**(command | more)))

    @property
    def asked(self) -> ContentRequest:
        """What the server was asked for."""
        request: ContentRequest = self.contents.ask.await_args.args[2]
        return request

    def calls(self) -> list[tuple[GatewayCall, GatewaySettlement | None]]:
        return list(self.state.gateway_sessions[SESSION.id].calls.values())

    def audited(self) -> list[tuple[AuditAction, str | None]]:
        return [(entry.action, entry.tool) for entry in self.state.audit.values()]

    def halted_with(self) -> GatewaySettlement:
        """The call that ended the session, without the token."""
        session, settlement, _, canary_id = self.halting.execute.await_args.args
        assert (session, canary_id) == (SESSION, "vault")
        assert CANARY not in str(settlement)
        assert isinstance(settlement, GatewaySettlement)
        return settlement


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- what is read ---


@pytest.mark.requirement("C5", "F5")
async def test_a_resource_is_a_call_in_ledger_and_audit_and_answered_by_the_clients_name(ports: Ports) -> None:
    result = await ports.read(params={"uri": URI, "_meta": {"progressToken": 1}})

    assert result == {"contents": [{"uri": URI, "text": "Buy milk."}]}
    assert ports.asked.params == {"uri": "file:///notes"}
    [(call, settlement)] = ports.calls()
    assert (call.name, call.params, call.server_id) == (RESOURCES, {"uri": "file:///notes"}, SERVER.id)
    assert settlement is not None
    assert ports.audited() == [(AuditAction.TOOL_EXECUTED, RESOURCES)]


async def test_a_prompt_is_a_call_of_the_servers_prompts(ports: Ports) -> None:
    link = {"type": "resource_link", "uri": "file:///notes"}
    ports.contents.ask.return_value = {"messages": [{"role": "user", "content": link}]}

    result = await ports.read(ContentMethod.GET_PROMPT, {"name": "mcp__files__greet"})

    assert result == {"messages": [{"role": "user", "content": {**link, "uri": URI}}]}
    assert ports.asked.params == {"name": "greet"}
    assert ports.audited() == [(AuditAction.TOOL_EXECUTED, "mcp__files__prompts")]


async def test_a_session_of_original_names_is_given_the_servers_own_uris(ports: Ports) -> None:
    session = replace(SESSION, names=ToolNames.ORIGINAL)
    assert await ports.read(params={"uri": "file:///notes"}, session=session) == NOTES


@pytest.mark.requirement("F5")
async def test_a_completion_is_neither_recorded_nor_audited(ports: Ports) -> None:
    ports.contents.ask.return_value = {"completion": {"values": ["notes"]}}

    assert await ports.read(ContentMethod.COMPLETE, COMPLETION) == {"completion": {"values": ["notes"]}}

    assert ports.asked.params["ref"] == {"type": "ref/resource", "uri": "file:///notes"}
    assert (ports.calls(), ports.audited()) == ([], [])


# --- what is refused ---


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        (ContentMethod.READ_RESOURCE, {"uri": "mcp+other:x"}, "resource_not_found"),
        (ContentMethod.GET_PROMPT, {"name": "mcp__other__x"}, "prompt_not_found"),
        (ContentMethod.READ_RESOURCE, {"uri": ""}, "content_invalid"),
        (ContentMethod.COMPLETE, {"ref": "x"}, "content_invalid"),
    ],
)
async def test_a_name_that_the_session_does_not_have_reaches_no_server(
    ports: Ports, method: ContentMethod, params: JsonObject, code: str
) -> None:
    ports.sources.owner_of_uri.return_value = ports.sources.owner_of_prompt.return_value = None

    with refused(code):
        await ports.read(method, params)

    ports.contents.ask.assert_not_awaited()
    assert ports.calls() == []


@pytest.mark.requirement("C2", "C5", "F5")
@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (ToolRule(decision=Verdict.DENY), "tool_denied"),
        (ToolRule(denied_params=("uri",)), "parameter_denied"),
        (ToolRule(decision=Verdict.REQUIRE_APPROVAL), "approval_required"),
    ],
)
async def test_what_policy_denies_or_wants_approved_is_stored_as_refused_and_reaches_no_server(
    ports: Ports, rule: ToolRule, error: str
) -> None:
    ports.rules(**{RESOURCES: rule})

    with refused("content_denied"):
        await ports.read()

    ports.contents.ask.assert_not_awaited()
    [(_, settlement)] = ports.calls()
    assert settlement is not None
    assert settlement.result.error_code == error
    assert ports.audited() == [(AuditAction.TOOL_BLOCKED, RESOURCES)]


@pytest.mark.requirement("C2")
async def test_no_more_is_read_than_policy_allows_a_session(ports: Ports) -> None:
    ports.rules(**{RESOURCES: ToolRule(max_calls=1)})
    await ports.read()

    with refused("content_denied"):
        await ports.read()

    ports.contents.ask.assert_awaited_once()


# --- canary tokens ---


@pytest.mark.requirement("C4", "F5")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        (ContentMethod.READ_RESOURCE, {"uri": URI, "word": CANARY}),
        (ContentMethod.GET_PROMPT, {"name": "greet", "arguments": {"word": CANARY}}),
        (ContentMethod.COMPLETE, {**COMPLETION, "argument": {"name": "path", "value": CANARY}}),
    ],
)
async def test_a_canary_token_in_a_request_ends_the_session_and_reaches_no_server(
    ports: Ports, method: ContentMethod, params: JsonObject
) -> None:
    with refused("gateway_session_halted"):
        await ports.read(method, params)

    assert ports.halted_with().result.error_code == "run_halted"
    ports.contents.ask.assert_not_awaited()
    assert ports.audited() == []  # halting stores it


@pytest.mark.requirement("C4", "F5")
@pytest.mark.parametrize("method", [ContentMethod.READ_RESOURCE, ContentMethod.COMPLETE])
@pytest.mark.parametrize(
    "answer",
    [
        {"contents": [{"uri": "file:///notes", "text": CANARY}]},
        {"contents": [], "_meta": {"word": CANARY}},
        {"contents": [{"uri": "file:///notes", "text": "x" * 70_000 + CANARY}]},
        McpFailure(McpFailureKind.SERVER_ERROR, CANARY, rpc_code=-32000),
    ],
    ids=["text", "beside the text", "beyond what is stored", "refusal"],
)
async def test_a_canary_token_in_an_answer_ends_the_session_and_is_told_to_nobody(
    ports: Ports, method: ContentMethod, answer: object
) -> None:
    ports.contents.ask.side_effect = [answer]

    with refused("gateway_session_halted"):
        await ports.read(method, COMPLETION if method is ContentMethod.COMPLETE else {"uri": URI})

    ports.halted_with()
    assert ports.audited() == []


# --- failures ---


@pytest.mark.requirement("A5", "E3", "F5")
@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (McpFailure(McpFailureKind.SERVER_ERROR, "No.", rpc_code=-32000), "content_refused"),
        (McpFailure(McpFailureKind.SERVER_ERROR, "None.", rpc_code=-32002), "content_not_found"),
        (McpFailure(McpFailureKind.SERVER_ERROR, "None.", rpc_code=-32601), "content_not_found"),
        (McpFailure(McpFailureKind.TIMEOUT, "Late."), "content_unavailable"),
        (McpFailure(McpFailureKind.CONNECTION_LOST, "Gone."), "content_unavailable"),
    ],
)
async def test_a_servers_failure_is_told_and_stored(ports: Ports, failure: McpFailure, code: str) -> None:
    ports.contents.ask.side_effect = failure

    with refused(code):
        await ports.read()

    [(_, settlement)] = ports.calls()
    assert settlement is not None
    assert settlement.result.error_code == "content_failed"
    assert ports.audited() == [(AuditAction.TOOL_FAILED, RESOURCES)]


@pytest.mark.requirement("E3")
async def test_a_request_whose_client_has_gone_is_settled(ports: Ports) -> None:
    ports.contents.ask.side_effect = asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await ports.read()

    [(_, settlement)] = ports.calls()
    assert settlement is not None


@pytest.mark.requirement("E3", "F5")
async def test_nothing_is_sent_before_its_intent_is_durable(ports: Ports, mocker: MockerFixture) -> None:
    ports.ledger = mocker.create_autospec(GatewayLedger, instance=True)
    ports.ledger.intend.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.read()

    ports.contents.ask.assert_not_awaited()


@pytest.mark.requirement("E3", "F5")
async def test_nothing_is_answered_before_its_outcome_is_durable(ports: Ports, mocker: MockerFixture) -> None:
    ports.ledger = mocker.create_autospec(GatewayLedger, instance=True)
    ports.ledger.intend.return_value = True
    ports.ledger.settle.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.read()


# --- servers that ask for input ---


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("policy", "method", "accepts"),
    [
        (ElicitationPolicy.ASK, "elicitation/create", True),
        (ElicitationPolicy.ASK, "sampling/createMessage", False),
        (ElicitationPolicy.DECLINE, "elicitation/create", False),
    ],
)
async def test_a_server_asks_people_alone_and_only_where_its_settings_allow_it(
    ports: Ports, policy: ElicitationPolicy, method: str, accepts: bool
) -> None:
    server = replace(SERVER, config=replace(SERVER.config, elicitation=policy))
    ports.sources.owner_of_uri.return_value = (server, "file:///notes")
    asks = {"resultType": "input_required", "inputRequests": {"a": {"method": method}}}
    ports.contents.ask.return_value = asks

    if accepts:
        assert await ports.read(accepts_input=True) == asks
    else:
        with refused("content_refused"):
            await ports.read(accepts_input=True)


async def test_answers_that_nobody_asked_for_do_not_reach_a_server(ports: Ports) -> None:
    await ports.read(params={"uri": URI, "inputResponses": {"a": {}}, "requestState": "x"}, accepts_input=True)
    assert ports.asked.params == {"uri": "file:///notes"}
