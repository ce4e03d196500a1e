"""What servers ask in the middle of a gateway call: who is asked, who may answer, and what becomes
of questions that nobody answers; without HTTP, whose test client waits for whole answers."""

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from application.approvals.decide_approval import DecideApprovalCommand
from application.approvals.ports import ApprovalFilter
from application.gateway.calls.answer_question import AnswerGatewayQuestionCommand
from application.gateway.calls.ask_client import AnswerLimits, AskableClient
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.sessions.open_session import OpenGatewaySessionCommand
from application.mcp.ports import McpFailure, McpFailureKind, McpReply
from application.system.pages import PageRequest
from domain.approvals.approval import ApprovalState
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.json_value import JsonObject
from domain.mcp.client_request import ClientAnswer, ClientRequest
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.tools.result import ToolOutcome
from tests.builders import ORG
from tests.doubles.mcp_connections import Invocation, text_reply
from tests.integration.http.asking_scene import (
    ABLE,
    ADMIN,
    ANSWER_LIMITS,
    COLOUR,
    ECHO,
    IDEA,
    PAGE,
    RED,
    ROOTS,
    TOKEN,
    WITH_TOOLS,
    Streamed,
    a_scene,
    asking,
    in_rounds,
    told,
)
from tests.integration.mcp.parts import until


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
        other = replace(scene, session=(await scene.container.open_gateway_session().execute(wanted)).session)
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
    limits = AnswerLimits(answer_s=0.0) if how == "expired" else ANSWER_LIMITS
    person = Streamed()
    async with a_scene(asking((COLOUR,)), limits=limits) as scene, asyncio.TaskGroup() as tasks:
        command = CallGatewayToolCommand(session=scene.session, name=ECHO, arguments={}, client=person.client())
        call = tasks.create_task(scene.container.call_gateway_tool().execute(command))
        note_id, request = await person.asked.get()
        assert request == COLOUR
        answer = AnswerGatewayQuestionCommand(session=scene.session, question_id=note_id, result=RED)
        if how == "answered":
            await scene.container.answer_gateway_question().execute(answer)
        elif how == "refused":
            await scene.container.answer_gateway_question().execute(replace(answer, result=None, refusal="Not now."))
        elif how == "wrong":
            with pytest.raises(ServiceError) as wrong:
                await scene.container.answer_gateway_question().execute(replace(answer, result={"action": "accept"}))
            assert wrong.value.kind is ErrorKind.INVALID
        elif how == "left":
            person.left.set()
        expected = {"answered": RED, "refused": {"action": "decline"}}.get(how, {"action": "cancel"})
        assert told(await call) == {"colour": expected}
        assert person.taken_back == ([note_id] if how in ("expired", "left") else [])
        assert await scene.notes() == []
        with pytest.raises(ServiceError) as late:
            await scene.container.answer_gateway_question().execute(answer)
        assert late.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.requirement("F5")
async def test_no_more_calls_of_a_session_wait_for_its_clients_than_is_set() -> None:
    async with a_scene(asking((COLOUR,)), limits=AnswerLimits(most_waiting=2)) as scene:
        waiting = [await scene.asked(arguments={"n": n}) for n in (1, 2)]
        assert told(await scene.called(arguments={"n": 3})) == {"colour": {"action": "cancel"}}
        state, responses = waiting[0].request_state, {"colour": RED}
        answer = await scene.called(arguments={"n": 1}, request_state=state, responses=responses)
        assert told(answer) == {"colour": RED}
        await scene.asked(arguments={"n": 4})


@pytest.mark.requirement("F5")
async def test_only_the_session_that_was_asked_answers() -> None:
    person = Streamed()
    async with a_scene(asking((COLOUR,))) as scene, asyncio.TaskGroup() as tasks:
        command = CallGatewayToolCommand(session=scene.session, name=ECHO, arguments={}, client=person.client())
        call = tasks.create_task(scene.container.call_gateway_tool().execute(command))
        note_id, _ = await person.asked.get()
        wanted = OpenGatewaySessionCommand(principal=ADMIN, agent="researcher", ttl_s=86_400)
        other = (await scene.container.open_gateway_session().execute(wanted)).session
        answer = AnswerGatewayQuestionCommand(session=other, question_id=note_id, result=RED)
        with pytest.raises(ServiceError) as refused:
            await scene.container.answer_gateway_question().execute(answer)
        assert refused.value.kind is ErrorKind.NOT_FOUND
        await scene.container.answer_gateway_question().execute(replace(answer, session=scene.session))
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
            call = asyncio.create_task(scene.container.call_gateway_tool().execute(command))
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
        call = tasks.create_task(scene.container.call_gateway_tool().execute(command))
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
        call = tasks.create_task(scene.container.call_gateway_tool().execute(command))
        note_id, request = await person.asked.get()
        [approval] = (await scene.stores.approvals.page(ORG, ApprovalFilter(), PageRequest(limit=9))).items
        assert approval.id in cast(str, request.params["message"])
        answer = AnswerGatewayQuestionCommand(session=scene.session, question_id=note_id, result={"action": "accept"})
        if decided == "never":
            dismissed: JsonObject = {"action": "cancel"}
            await scene.container.answer_gateway_question().execute(replace(answer, result=dismissed))
            told_of = await call
            assert told_of.result.error_code == "approval_pending"
            assert approval.id in told_of.result.text
            assert scene.connections.calls == []
            return
        if decided == "after it is closed":
            accepted: JsonObject = {"action": "accept", "content": {}}
            await scene.container.answer_gateway_question().execute(replace(answer, result=accepted))
            stored = await scene.stores.approvals.get(ORG, approval.id)
            assert stored is not None
            assert stored.state is ApprovalState.PENDING
        word = DecideApprovalCommand(principal=ADMIN, approval_id=approval.id, approve=True)
        await scene.container.decide_approval().execute(word)
        assert told(await call) == {}
        assert person.taken_back == ([note_id] if decided == "while it is open" else [])


@pytest.mark.requirement("F5", "B4", "E7")
async def test_two_calls_without_a_handshake_are_not_taken_for_one_client() -> None:
    callers: list[str] = []

    async def answer(invocation: Invocation) -> McpReply:
        assert invocation.relay is not None
        callers.append(invocation.relay.caller)
        return text_reply("done")

    async with a_scene(answer) as scene:
        for _ in range(2):
            await scene.called()
        for _ in range(2):
            await scene.called(client=AskableClient(capabilities=ABLE, id="handshake"))
    assert len({*callers}) == 3
    assert callers[2] == callers[3]
