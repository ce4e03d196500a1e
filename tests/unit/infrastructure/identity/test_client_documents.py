"""Metadata documents of OAuth clients: what is read, how often, and what is refused."""

import json

import pytest

from application.workflows.http_request import HttpAnswer, HttpCall, HttpCallFailed
from infrastructure.identity.client_documents import FRESH_S, MAX_DOCUMENT, RETRY_S, HttpClientDocuments
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import CLIENT
from tests.refusals import refused

pytestmark = pytest.mark.requirement("P5")


class Web:
    """Answers every request alike."""

    def __init__(self) -> None:
        self.answer: HttpAnswer | None = HttpAnswer(status=200, media_type="", text=json.dumps({"client_id": CLIENT}))
        self.sent: list[HttpCall] = []

    async def send(self, call: HttpCall) -> HttpAnswer:
        self.sent.append(call)
        if self.answer is None:
            raise HttpCallFailed("http_blocked", "The address is not public.", retryable=False)
        return self.answer


async def test_a_document_is_read_once_while_it_is_fresh() -> None:
    web, clock = Web(), FixedClock()
    documents = HttpClientDocuments(http=web, clock=clock)
    for _ in range(2):
        assert await documents.read(CLIENT) == {"client_id": CLIENT}
    assert [call.url for call in web.sent] == [CLIENT]
    clock.advance(FRESH_S)
    await documents.read(CLIENT)
    assert len(web.sent) == len((CLIENT, CLIENT))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        HttpAnswer(status=302, media_type="", text="{}"),
        HttpAnswer(status=404, media_type="", text="{}"),
        HttpAnswer(status=200, media_type="", text="[]"),
        HttpAnswer(status=200, media_type="", text="<html>"),
        HttpAnswer(status=200, media_type="", text="[" * 5_000),
        HttpAnswer(status=200, media_type="", text=json.dumps({"a": "a" * MAX_DOCUMENT})),
    ],
)
async def test_what_is_no_document_is_refused_and_not_asked_for_at_once_again(answer: HttpAnswer | None) -> None:
    web, clock = Web(), FixedClock()
    web.answer = answer
    documents = HttpClientDocuments(http=web, clock=clock)
    for _ in range(2):
        with refused("invalid_client"):
            await documents.read(CLIENT)
    assert len(web.sent) == 1
    clock.advance(RETRY_S)
    web.answer = Web().answer
    assert await documents.read(CLIENT) == {"client_id": CLIENT}
