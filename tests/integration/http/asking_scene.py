"""A gateway session over one server that asks in the middle of calls, and clients that can be
asked."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from application.audit.ports import AuditFilter
from application.gateway.calls.answer import GatewayAnswer, InputRequested
from application.gateway.calls.ask_client import AnswerLimits, AskableClient, Question
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.sessions.open_session import OpenGatewaySessionCommand
from application.mcp.ports import McpFailure, McpInputRequired, McpReply
from application.system.pages import PageRequest
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.gateway.note import GatewayNoteKind
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, GatewayNoteId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.behavior import ElicitationPolicy, PassingPolicy
from domain.mcp.client_request import ClientRequest, ClientRequestKind
from domain.policy.canary import CanaryToken
from domain.policy.rules import ToolPolicies
from domain.tools.result import ToolOutcome
from infrastructure.container import Container
from tests.builders import ORG, a_server, an_agent, an_audit_event, an_organization
from tests.composition import stores_of
from tests.contract.stores import Stores
from tests.doubles.mcp_connections import (
    Handler,
    InMemoryMcpConnections,
    InMemoryMcpServer,
    InMemoryTool,
    Invocation,
    text_reply,
)
from tests.doubles.state import InMemoryState
from tests.integration.http.service import a_service_container, known_keys
from tests.integration.http.tables import InMemoryTables
from tests.mcp_builders import a_person_server

ECHO = "mcp__files__echo"
ANSWER_LIMITS = AnswerLimits()
ADMIN = Principal(organization_id=ORG, key_id=ApiKeyId("key_admin"), role=Role.ADMIN)
FORM: JsonObject = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
COLOUR = ClientRequest(
    key="colour", kind=ClientRequestKind.ELICITATION, params={"message": "Which colour?", "requestedSchema": FORM}
)
PAGE = ClientRequest(
    key="page",
    kind=ClientRequestKind.ELICITATION,
    params={"message": "Sign in.", "mode": "url", "url": "https://example.org"},
)
IDEA = ClientRequest(key="idea", kind=ClientRequestKind.SAMPLING, params={"messages": [], "maxTokens": 9})
WITH_TOOLS = replace(IDEA, key="tools", params={"messages": [], "tools": []})
ROOTS = ClientRequest(key="roots", kind=ClientRequestKind.ROOTS, params={})
RED: JsonObject = {"action": "accept", "content": {"colour": "red"}}
ABLE: JsonObject = {"elicitation": {}, "sampling": {}, "roots": {}}
NO_POLICIES = ToolPolicies()
TOKEN = "sesame-opens-nothing"


def asking(*rounds: tuple[ClientRequest, ...]) -> Handler:
    """A server of the older generations: it asks while it works, and says what it was told."""

    async def ask(invocation: Invocation) -> McpReply:
        assert invocation.relay is not None
        told: dict[str, JsonValue] = {}
        for requests in rounds:
            answers = await invocation.relay.ask(requests)
            told |= {key: answer.result or answer.refusal for key, answer in answers.items()}
        return text_reply(json.dumps(told))

    return ask


def in_rounds(*requests: ClientRequest) -> Handler:
    """One of the newer generation: it asks by its answer."""

    async def answer(invocation: Invocation) -> McpReply:
        given = invocation.input_responses or {}
        if invocation.request_state == "asked" or given:
            return text_reply(json.dumps({"given": dict(given), "state": invocation.request_state}))
        asked = McpInputRequired(requests=requests, request_state="asked")
        return McpReply(is_error=False, content=(), input_required=asked)

    return answer


@dataclass(slots=True, kw_only=True)
class Scene:
    """A session over a server with one tool."""

    container: Container
    stores: Stores
    connections: InMemoryMcpConnections
    session: GatewaySession
    state: InMemoryState

    async def called(self, capabilities: JsonObject | None = None, **more: Any) -> GatewayAnswer:
        """A call, by a client of the newer generation if none is given."""
        newer = AskableClient(capabilities=ABLE if capabilities is None else capabilities)
        command = CallGatewayToolCommand(
            session=self.session,
            name=ECHO,
            arguments=more.pop("arguments", {}),
            resumable=True,
            client=more.pop("client", newer),
            **more,
        )
        return await self.container.call_gateway_tool().execute(command)

    async def asked(self, **more: Any) -> InputRequested:
        """What a call asks."""
        answer = await self.called(**more)
        assert answer.asked is not None, answer.result
        return answer.asked

    async def refused(self, **more: Any) -> str:
        """The code of the error that a call is answered with."""
        with pytest.raises(ServiceError) as refusal:
            await self.called(**more)
        return refusal.value.code

    async def audited(self) -> list[tuple[AuditAction, object]]:
        """What was kept of calls: newest first, with what was asked."""
        page = await self.stores.audit.page(ORG, AuditFilter(), PageRequest(limit=50))
        kept = [entry for entry in page.items if entry.action.startswith(("tool.", "session."))]
        return [(entry.action, entry.details.get("asked")) for entry in kept]

    async def outcomes(self) -> list[ToolOutcome | None]:
        calls = await self.stores.gateway_ledger.calls_of(ORG, self.session.id)
        return [None if settlement is None else settlement.result.outcome for _, settlement in calls]

    async def notes(self) -> list[GatewayNoteKind]:
        """What lies between processes about the session's calls."""
        calls = await self.stores.gateway_ledger.calls_of(ORG, self.session.id)
        left = [await self.stores.gateway_notes.of_call(ORG, self.session.id, call.id) for call, _ in calls]
        return [note.kind for notes in left for note in notes]


@asynccontextmanager
async def a_scene(
    handler: Handler | McpFailure,
    *,
    limits: AnswerLimits = ANSWER_LIMITS,
    allowed: bool = True,
    policies: ToolPolicies = NO_POLICIES,
    opener: Principal = ADMIN,
    own_accounts: bool = False,
) -> AsyncIterator[Scene]:
    tables = InMemoryTables()
    tool = InMemoryTool(answer=handler)
    connections = InMemoryMcpConnections({"files": InMemoryMcpServer(tools={"echo": tool})})
    async with asyncio.timeout(120), tables.open([an_organization(ORG)], known_keys()):
        container = a_service_container(tables, connections=connections, answer_limits=limits)
        stores = stores_of(container)
        server = a_server()
        if allowed:
            config = replace(
                server.config,
                elicitation=ElicitationPolicy.ASK,
                sampling=PassingPolicy.PASS,
                roots=PassingPolicy.PASS,
            )
            server = replace(server, config=config)
        if own_accounts:
            server = replace(server, config=replace(a_person_server().config, slug="files"))
        await stores.servers.add(server, an_audit_event(201))
        token = CanaryToken(id="own", secret=TOKEN)
        agent = an_agent(mcp_servers=("files",), canary_tokens=(token,))
        agent = replace(agent, config=replace(agent.config, tool_policies=policies))
        await stores.agents.add(agent, an_audit_event(202))
        wanted = OpenGatewaySessionCommand(principal=opener, agent="researcher", ttl_s=86_400)
        session = (await container.open_gateway_session().execute(wanted)).session
        yield Scene(container=container, stores=stores, connections=connections, session=session, state=tables.state)


@dataclass(slots=True)
class Streamed:
    """A client of the older generation: questions come while its call waits."""

    asked: "asyncio.Queue[Question]" = field(default_factory=asyncio.Queue)
    taken_back: list[GatewayNoteId] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def client(self) -> AskableClient:
        return AskableClient(capabilities=ABLE, ask=self._ask, take_back=self._take_back, left=self.left)

    async def _ask(self, questions: tuple[Question, ...]) -> None:
        for question in questions:
            self.asked.put_nowait(question)

    async def _take_back(self, note_ids: tuple[GatewayNoteId, ...]) -> None:
        self.taken_back.extend(note_ids)


def told(answer: GatewayAnswer) -> dict[str, Any]:
    """What the server says that it was told."""
    assert not answer.result.is_error, answer.result
    return cast("dict[str, Any]", json.loads(answer.result.text))
