"""The responses of gateway requests."""

import asyncio
from typing import Any

from pytest_mock import MockerFixture

from application.gateway.calls.request_cancellations import RequestCancellations
from interfaces.gateway.answering import GatewayAnswers
from interfaces.gateway.exchange import Exchange
from interfaces.gateway.generations import MODERN_VERSIONS, Envelope
from interfaces.gateway.messages import RpcMessage
from interfaces.gateway.methods import GatewayMethods
from tests.gateway_builders import a_gateway_session


async def test_an_answered_request_leaves_nothing_for_a_garbage_collection(mocker: MockerFixture) -> None:
    exchange = Exchange(
        session=a_gateway_session(),
        envelope=Envelope(version=MODERN_VERSIONS[0], capabilities={}),
        message=RpcMessage(method="tools/call", id=1),
        takes_stream=True,
    )
    sent: list[Any] = []

    async def answer(asked: Exchange) -> dict[str, object]:
        assert asked.tell is not None
        return {"resultType": "complete"}

    async def send(message: Any) -> None:
        sent.append(message)

    methods = mocker.create_autospec(GatewayMethods, instance=True)
    methods.answer.side_effect = answer
    answers = GatewayAnswers(methods=methods, cancellations=mocker.create_autospec(RequestCancellations, instance=True))

    await answers.answer(exchange, asyncio.Event().wait, send)  # type: ignore[arg-type]  # never called

    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert exchange.tell is None
