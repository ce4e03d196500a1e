"""Clients of the gateway whose person has not connected an account: who is asked, and what the
others read."""

import asyncio
from dataclasses import replace

import pytest

from application.gateway.calls.answer_question import AnswerGatewayQuestionCommand
from application.gateway.calls.ask_client import AskableClient
from application.mcp.account_server import account_topic
from application.mcp.authorization import AuthorizationAnswer
from application.mcp.ports import McpFailure, McpFailureKind, McpReply
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId, UserId
from domain.json_value import JsonObject
from domain.mcp.elicitation import ACCOUNT_QUESTION
from tests.builders import ORG, SERVER
from tests.doubles.mcp_connections import Handler, Invocation, text_reply
from tests.integration.http.asking_scene import ADMIN, Scene, Streamed, a_scene
from tests.mcp_builders import a_person_server

pytestmark = pytest.mark.requirement("P3", "F5")

ANN = Principal(organization_id=ORG, key_id=ApiKeyId("usr_ann"), role=Role.OPERATOR)
URLS: JsonObject = {"elicitation": {"url": {}}}
FORMS: JsonObject = {"elicitation": {}}
ACCEPTED: JsonObject = {"action": "accept"}
PAGE = "https://agents.example.com/console/accounts?server=files"


class Tickets:
    """A server that refuses calls until Ann has connected her account."""

    def __init__(self) -> None:
        self.is_connected = False

    @property
    def handler(self) -> Handler:
        async def answer(_: Invocation) -> McpReply:
            if not self.is_connected:
                raise McpFailure(McpFailureKind.NEEDS_AUTH, "none has been granted yet")
            return text_reply("3 tickets")

        return answer

    def connect(self, scene: Scene) -> None:
        self.is_connected = True
        server = replace(a_person_server(), id=SERVER).acting_for(UserId("usr_ann"))
        scene.container.wakeups().wake(account_topic(server))


async def test_a_client_of_the_newer_generation_shows_the_page_and_its_call_goes_on_after_the_consent() -> None:
    tickets = Tickets()
    async with a_scene(tickets.handler, opener=ANN, own_accounts=True) as scene:
        asked = await scene.asked(capabilities=URLS)
        [request] = asked.requests
        assert (request.key, request.params["mode"], request.params["url"]) == (ACCOUNT_QUESTION, "url", PAGE)
        answering = asyncio.create_task(
            scene.called(capabilities=URLS, request_state=asked.request_state, responses={ACCOUNT_QUESTION: ACCEPTED})
        )
        await asyncio.sleep(0)
        tickets.connect(scene)
        assert (await answering).result.text == "3 tickets"
        assert await scene.notes() == []


async def test_a_client_that_is_asked_on_its_stream_gets_the_result_of_the_same_call() -> None:
    tickets, streamed = Tickets(), Streamed()
    client = replace(streamed.client(), capabilities=URLS)
    async with a_scene(tickets.handler, opener=ANN, own_accounts=True) as scene:
        calling = asyncio.create_task(scene.called(client=client))
        note_id, request = await streamed.asked.get()
        assert request.params["url"] == PAGE
        answer = AnswerGatewayQuestionCommand(session=scene.session, question_id=note_id, result=ACCEPTED)
        await scene.container.answer_gateway_question().execute(answer)
        tickets.connect(scene)
        assert (await calling).result.text == "3 tickets"


async def test_a_consent_whose_signal_was_lost_is_read() -> None:
    tickets, streamed = Tickets(), Streamed()
    client = replace(streamed.client(), capabilities=URLS)
    async with a_scene(tickets.handler, opener=ANN, own_accounts=True) as scene:
        calling = asyncio.create_task(scene.called(client=client))
        note_id, _ = await streamed.asked.get()
        tickets.is_connected = True
        server = replace(a_person_server(), id=SERVER).acting_for(UserId("usr_ann"))
        await scene.container.oauth().begin(server, ANN.key_id)
        await scene.container.oauth().complete(AuthorizationAnswer(state="state-1", code="c0de"))
        answer = AnswerGatewayQuestionCommand(session=scene.session, question_id=note_id, result=ACCEPTED)
        await scene.container.answer_gateway_question().execute(answer)
        assert (await calling).result.text == "3 tickets"


@pytest.mark.parametrize("client", [AskableClient(capabilities=FORMS), None], ids=["forms only", "no questions"])
async def test_a_client_that_shows_no_pages_reads_the_link(client: AskableClient | None) -> None:
    async with a_scene(Tickets().handler, opener=ANN, own_accounts=True) as scene:
        result = (await scene.called(client=client)).result
        assert (result.error_code, PAGE in result.text) == ("account_missing", True)


async def test_a_person_who_declines_reads_the_link() -> None:
    async with a_scene(Tickets().handler, opener=ANN, own_accounts=True) as scene:
        asked = await scene.asked(capabilities=URLS)
        declined: JsonObject = {ACCOUNT_QUESTION: {"action": "decline"}}
        last = await scene.called(capabilities=URLS, request_state=asked.request_state, responses=declined)
        assert last.result.error_code == "account_missing"


async def test_a_call_does_not_wait_for_the_consent_once_its_client_has_left() -> None:
    streamed = Streamed()
    client = replace(streamed.client(), capabilities=URLS)
    async with a_scene(Tickets().handler, opener=ANN, own_accounts=True) as scene:
        calling = asyncio.create_task(scene.called(client=client))
        note_id, _ = await streamed.asked.get()
        answer = AnswerGatewayQuestionCommand(session=scene.session, question_id=note_id, result=ACCEPTED)
        await scene.container.answer_gateway_question().execute(answer)
        streamed.left.set()
        assert (await calling).result.error_code == "account_missing"


async def test_a_session_of_a_key_says_that_a_person_is_needed() -> None:
    async with a_scene(Tickets().handler, opener=ADMIN, own_accounts=True) as scene:
        assert (await scene.called(capabilities=URLS)).result.error_code == "person_required"
