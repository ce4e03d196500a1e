"""What servers ask in the middle of a gateway call: who is asked, who may answer, and what becomes of questions that nobody
answers; without HTTP, whose test client waits for whole answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from application.approvals.decide_approval import DecideApprovalCommand
from application.approvals.ports import ApprovalFilter
from application.audit.ports import AuditFilter
from application.gateway.answer import Asked, GatewayAnswer
from application.gateway.answer_question import AnswerGatewayQuestionCommand
from application.gateway.ask_client import AskableClient, Patience, Question
from application.gateway.call_tool import CallGatewayToolCommand
from application.gateway.open_session import OpenGatewaySessionCommand
from application.mcp.ports import McpFailure, McpFailureKind, McpInputRequired, McpReply
from application.system.pages import PageRequest
from domain.approvals.approval import ApprovalState
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.gateway.note import GatewayNoteKind
from domain.gateway.session import GatewaySession
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, GatewayNoteId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.client_request import ClientAnswer, ClientRequest, ClientRequestKind
from domain.mcp.server import ElicitationPolicy, PassingPolicy
from domain.policy.canary import CanaryToken
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.tools.result import ToolOutcome
from infrastructure.memory.mcp_connections import (
    Handler,
    InMemoryMcpConnections,
    InMemoryMcpServer,
    InMemoryTool,
    Invocation,
    text_reply,
)
from infrastructure.memory.state import InMemoryState
from interfaces.http.use_cases import UseCases
from tests.builders import ORG, a_server, an_agent, an_audit_event, an_organization
from tests.contract.stores import Stores
from tests.integration.http.service import MODEL, ObedientWorker, known_keys
from tests.integration.http.tables import InMemoryTables
from tests.integration.http.wiring import PATIENCE, use_cases
from tests.integration.mcp.parts import until

ECHO = "mcp__files__echo"
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

    cases: UseCases
    stores: Stores
    connections: InMemoryMcpConnections
    session: GatewaySession
    state: InMemoryState

    async def called(self, capabilities: JsonObject | None = None, **more: Any) -> GatewayAnswer:
        """A call by a client of the newer generation."""
        command = CallGatewayToolCommand(
            session=self.session,
            name=ECHO,
            arguments=more.pop("arguments", {}),
            resumable=True,
            client=AskableClient(capabilities=ABLE if capabilities is None else capabilities),
            **more,
        )
        return await self.cases.call_gateway_tool.execute(command)

    async def asked(self, **more: Any) -> Asked:
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
    patience: Patience = PATIENCE,
    allowed: bool = True,
    policies: ToolPolicies = NO_POLICIES,
) -> AsyncIterator[Scene]:
    tables = InMemoryTables()
    tool = InMemoryTool(answer=handler)
    connections = InMemoryMcpConnections({"files": InMemoryMcpServer(tools={"echo": tool})})
    async with asyncio.timeout(30), tables.open([an_organization(ORG)], known_keys()):
        stores = tables.stores
        cases = use_cases(stores, ObedientWorker(stores), connections, models=(MODEL,), patience=patience)
        server = a_server()
        if allowed:
            config = replace(
                server.config,
                elicitation=ElicitationPolicy.ASK,
                sampling=PassingPolicy.PASS,
                roots=PassingPolicy.PASS,
            )
            server = replace(server, config=config)
        await stores.servers.add(server, an_audit_event(201))
        token = CanaryToken(id="own", secret=TOKEN)
        agent = an_agent(mcp_servers=("files",), canary_tokens=(token,))
        agent = replace(agent, config=replace(agent.config, tool_policies=policies))
        await stores.agents.add(agent, an_audit_event(202))
        wanted = OpenGatewaySessionCommand(principal=ADMIN, agent="researcher", ttl_s=86_400)
        session = (await cases.open_gateway_session.execute(wanted)).session
        yield Scene(cases=cases, stores=stores, connections=connections, session=session, state=tables.state)


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


@pytest.mark.requirement("F5")
async def test_several_requests_are_answered_together_and_what_is_missing_is_asked_for_again() -> None:
    async with a_scene(in_rounds(COLOUR, IDEA, ROOTS)) as scene:
        asked = await scene.asked()
        assert asked.requests == (COLOUR, IDEA, ROOTS)
        assert await scene.outcomes() == [None]
        again = await scene.asked(request_state=asked.request_state, responses={"colour": RED})
        assert [request.key for request in again.requests] == ["colour", "idea", "roots"]

        sampled = {"role": "assistant", "content": {"type": "text", "text": "Blue."}, "model": "m", "_meta": {"a": 1}}
        roots = {"roots": [{"uri": "file:///home", "more": 1}]}
        given = {"colour": RED, "idea": sampled, "roots": roots, "unknown": {"action": "accept"}}
        answer = await scene.called(request_state=again.request_state, responses=given)

        assert told(answer)["state"] == "asked"
        assert told(answer)["given"] == {
            "colour": RED,
            "idea": {name: value for name, value in sampled.items() if name != "_meta"},
            "roots": {"roots": [{"uri": "file:///home"}]},
        }
        assert await scene.outcomes() == [ToolOutcome.SUCCEEDED]
        assert await scene.notes() == []
        words = [("elicitation", "accept"), ("sampling", "given"), ("roots", "given")]
        kept = [{"kind": kind, "answer": word} for kind, word in words]
        assert await scene.audited() == [(AuditAction.TOOL_EXECUTED, kept)]


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "accept", "content": {"colour": 7}},
        {"action": "accept"},
        {"action": "perhaps"},
        {"action": "accept", "content": {"colour": "r" * 70_000}},
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_can_be_given_again(wrong: JsonObject) -> None:
    async with a_scene(asking((COLOUR,))) as scene:
        asked = await scene.asked()
        state = asked.request_state
        assert await scene.refused(request_state=state, responses={"colour": wrong}) == "client_answer_invalid"
        answer = await scene.called(request_state=state, responses={"colour": RED})
        assert told(answer) == {"colour": RED}


@pytest.mark.requirement("F5")
async def test_a_state_is_good_for_its_session_its_tool_its_arguments_and_once() -> None:
    async with a_scene(asking((COLOUR,), (COLOUR,))) as scene:
        first = await scene.asked(arguments={"n": 1})
        responses = {"colour": RED}
        mine = {"request_state": first.request_state, "responses": responses}
        wanted = OpenGatewaySessionCommand(principal=ADMIN, agent="researcher", ttl_s=86_400)
        other = replace(scene, session=(await scene.cases.open_gateway_session.execute(wanted)).session)
        tampered = {**mine, "request_state": f"{first.request_state}x"}

        for refused in (
            scene.refused(arguments={"n": 2}, **mine),
            other.refused(arguments={"n": 1}, **mine),
            scene.refused(arguments={"n": 1}, **tampered),
        ):
            assert await refused == "request_state_invalid"
        second = await scene.asked(arguments={"n": 1}, **mine)
        assert await scene.refused(arguments={"n": 1}, **mine) == "request_state_invalid"
        answer = await scene.called(arguments={"n": 1}, request_state=second.request_state, responses=responses)
        assert told(answer) == {"colour": RED}
        assert await scene.outcomes() == [ToolOutcome.SUCCEEDED]


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("request_", "capabilities", "word"),
    [
        (COLOUR, {"sampling": {}}, {"action": "decline"}),
        (COLOUR, {"elicitation": {"url": {}}}, {"action": "decline"}),
        (PAGE, {"elicitation": {}}, {"action": "decline"}),
        (IDEA, {"elicitation": {}}, "The client cannot be asked for this."),
        (WITH_TOOLS, {"sampling": {}}, "The client cannot be asked for this."),
        (ROOTS, {"roots": None}, "The client cannot be asked for this."),
    ],
)
async def test_nobody_is_asked_for_what_the_client_has_not(
    request_: ClientRequest, capabilities: JsonObject, word: object
) -> None:
    async with a_scene(asking((request_,))) as scene:
        assert told(await scene.called(capabilities)) == {request_.key: word}
        kept = [{"kind": request_.kind.capability, "answer": "not_asked"}]
        assert await scene.audited() == [(AuditAction.TOOL_EXECUTED, kept)]


@pytest.mark.requirement("F5")
async def test_a_server_is_told_what_its_client_has_and_may_be_asked_for() -> None:
    seen: list[JsonObject | None] = []

    async def look(invocation: Invocation) -> McpReply:
        seen.append(None if invocation.relay is None else invocation.relay.capabilities)
        return text_reply("done")

    able: JsonObject = {"elicitation": {"form": {}}, "sampling": {"tools": {}}, "experimental": {"x": {}}}
    async with a_scene(look) as scene:
        await scene.called(able)
    async with a_scene(look, allowed=False) as scene:
        await scene.called(able)
    assert seen == [{"elicitation": {"form": {}}, "sampling": {"tools": {}}}, None]


@pytest.mark.requirement("F5")
async def test_a_client_is_told_which_capability_a_server_wants_unless_it_may_not_be_used() -> None:
    required: JsonObject = {"sampling": {}}
    failure = McpFailure(McpFailureKind.SERVER_ERROR, "No.", rpc_code=-32021, required=required)
    async with a_scene(failure) as scene:
        assert (await scene.called({"elicitation": {}})).missing == required
        assert (await scene.called({"sampling": {}})).missing == {}
        assert await scene.outcomes() == [ToolOutcome.FAILED] * 2
    async with a_scene(failure, allowed=False) as scene:
        assert (await scene.called({"elicitation": {}})).missing == {}


@pytest.mark.requirement("C4", "F5")
@pytest.mark.parametrize("where", ["question", "answer"])
async def test_a_canary_token_in_a_question_or_an_answer_goes_no_further_and_ends_the_session(where: str) -> None:
    heard: list[ClientAnswer] = []
    question = COLOUR if where == "answer" else replace(COLOUR, params={**COLOUR.params, "message": f"Is it {TOKEN}?"})

    async def ask(invocation: Invocation) -> McpReply:
        assert invocation.relay is not None
        heard.extend((await invocation.relay.ask((question,))).values())
        return text_reply("done")

    async with a_scene(ask) as scene:
        if where == "question":
            code = await scene.refused()
        else:
            leaky: JsonObject = {"action": "accept", "content": {"colour": TOKEN}}
            asked = await scene.asked()
            code = await scene.refused(request_state=asked.request_state, responses={"colour": leaky})
        assert code == "gateway_session_halted"
        assert [answer.result for answer in heard] == [{"action": "cancel"}]
        stored = await scene.stores.gateway_sessions.get(ORG, scene.session.id)
        assert stored is not None
        assert stored.revoked_at is not None


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("how", ["answered", "refused", "wrong", "expired", "left"])
async def test_a_client_on_a_stream_is_asked_while_its_call_waits(how: str) -> None:
    patience = Patience(answer_s=0.0) if how == "expired" else PATIENCE
    person = Streamed()
    async with a_scene(asking((COLOUR,)), patience=patience) as scene, asyncio.TaskGroup() as tasks:
        command = CallGatewayToolCommand(session=scene.session, name=ECHO, arguments={}, client=person.client())
        call = tasks.create_task(scene.cases.call_gateway_tool.execute(command))
        note_id, request = await person.asked.get()
        assert request == COLOUR
        answer = AnswerGatewayQuestionCommand(session=scene.session, question_id=note_id, result=RED)
        if how == "answered":
            await scene.cases.answer_gateway_question.execute(answer)
        elif how == "refused":
            await scene.cases.answer_gateway_question.execute(replace(answer, result=None, refusal="Not now."))
        elif how == "wrong":
            with pytest.raises(ServiceError) as wrong:
                await scene.cases.answer_gateway_question.execute(replace(answer, result={"action": "accept"}))
            assert wrong.value.kind is ErrorKind.INVALID
        elif how == "left":
            person.left.set()
        expected = {"answered": RED, "refused": {"action": "decline"}}.get(how, {"action": "cancel"})
        assert told(await call) == {"colour": expected}
        assert person.taken_back == ([note_id] if how in ("expired", "left") else [])
        assert await scene.notes() == []
        with pytest.raises(ServiceError) as late:
            await scene.cases.answer_gateway_question.execute(answer)
        assert late.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.requirement("F5")
async def test_only_the_session_that_was_asked_answers() -> None:
    person = Streamed()
    async with a_scene(asking((COLOUR,))) as scene, asyncio.TaskGroup() as tasks:
        command = CallGatewayToolCommand(session=scene.session, name=ECHO, arguments={}, client=person.client())
        call = tasks.create_task(scene.cases.call_gateway_tool.execute(command))
        note_id, _ = await person.asked.get()
        wanted = OpenGatewaySessionCommand(principal=ADMIN, agent="researcher", ttl_s=86_400)
        other = (await scene.cases.open_gateway_session.execute(wanted)).session
        answer = AnswerGatewayQuestionCommand(session=other, question_id=note_id, result=RED)
        with pytest.raises(ServiceError) as refused:
            await scene.cases.answer_gateway_question.execute(answer)
        assert refused.value.kind is ErrorKind.NOT_FOUND
        await scene.cases.answer_gateway_question.execute(replace(answer, session=scene.session))
        assert told(await call) == {"colour": RED}


@pytest.mark.requirement("F5", "A12")
@pytest.mark.parametrize("generation", ["stream", "again"])
async def test_a_call_whose_client_goes_is_cancelled_and_its_question_taken_back(generation: str) -> None:
    person, reached = Streamed(), asyncio.Event()

    async def ask(invocation: Invocation) -> McpReply:
        assert invocation.relay is not None
        await invocation.relay.ask((COLOUR,))
        reached.set()
        return cast(McpReply, await asyncio.get_running_loop().create_future())

    async with a_scene(ask) as scene:
        if generation == "stream":
            command = CallGatewayToolCommand(session=scene.session, name=ECHO, arguments={}, client=person.client())
            call = asyncio.create_task(scene.cases.call_gateway_tool.execute(command))
            note_id, _ = await person.asked.get()
            call.cancel()
            await asyncio.wait({call})
            assert person.taken_back == [note_id]
        else:
            asked = await scene.asked()
            again = asyncio.create_task(scene.called(request_state=asked.request_state, responses={"colour": RED}))
            await reached.wait()
            again.cancel()
            await asyncio.wait({again})
        calls = scene.state.gateway_sessions[scene.session.id].calls
        await until(lambda: all(settlement is not None for _, settlement in calls.values()))
        assert await scene.outcomes() == [ToolOutcome.UNKNOWN]
        assert len(scene.connections.cancelled) == 1


@pytest.mark.requirement("F5", "E3")
async def test_a_call_that_waits_for_its_client_is_not_taken_for_lost() -> None:
    person = Streamed()
    async with a_scene(asking((COLOUR,))) as scene, asyncio.TaskGroup() as tasks:
        command = CallGatewayToolCommand(session=scene.session, name=ECHO, arguments={}, client=person.client())
        call = tasks.create_task(scene.cases.call_gateway_tool.execute(command))
        note_id, _ = await person.asked.get()
        ((waiting, _),) = await scene.stores.gateway_ledger.calls_of(ORG, scene.session.id)
        note = await scene.stores.gateway_notes.get(ORG, scene.session.id, note_id)
        assert note is not None
        assert waiting.due_at is not None
        assert waiting.due_at > note.expires_at
        person.left.set()
        await call


@pytest.mark.requirement("C3", "F5")
@pytest.mark.parametrize("decided", ["while it is open", "after it is closed", "never"])
async def test_a_form_tells_who_waits_for_an_approval_and_decides_nothing(decided: str) -> None:
    person = Streamed()
    policies = ToolPolicies(rules=((ECHO, ToolRule(decision=Verdict.REQUIRE_APPROVAL)),))
    handler = asking(())
    async with a_scene(handler, policies=policies) as scene, asyncio.TaskGroup() as tasks:
        command = CallGatewayToolCommand(session=scene.session, name=ECHO, arguments={}, client=person.client())
        call = tasks.create_task(scene.cases.call_gateway_tool.execute(command))
        note_id, request = await person.asked.get()
        [approval] = (await scene.stores.approvals.page(ORG, ApprovalFilter(), PageRequest(limit=9))).items
        assert approval.id in cast(str, request.params["message"])
        answer = AnswerGatewayQuestionCommand(session=scene.session, question_id=note_id, result={"action": "accept"})
        if decided == "never":
            dismissed: JsonObject = {"action": "cancel"}
            await scene.cases.answer_gateway_question.execute(replace(answer, result=dismissed))
            told_of = await call
            assert told_of.result.error_code == "approval_pending"
            assert approval.id in told_of.result.text
            assert scene.connections.calls == []
            return
        if decided == "after it is closed":
            accepted: JsonObject = {"action": "accept", "content": {}}
            await scene.cases.answer_gateway_question.execute(replace(answer, result=accepted))
            stored = await scene.stores.approvals.get(ORG, approval.id)
            assert stored is not None
            assert stored.state is ApprovalState.PENDING
        word = DecideApprovalCommand(principal=ADMIN, approval_id=approval.id, approve=True)
        await scene.cases.decide_approval.execute(word)
        assert told(await call) == {}
        assert person.taken_back == ([note_id] if decided == "while it is open" else [])
