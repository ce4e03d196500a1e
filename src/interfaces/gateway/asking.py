"""Requests of servers to the client in the middle of its call, and the client's answers, in the
format of its generation.

MCP client/elicitation, client/sampling, client/roots; MCP 2026-07-28, basic/utilities/mrtr.
"""

import asyncio
from collections.abc import Mapping

from application.gateway.calls.answer import InputRequested
from application.gateway.calls.answer_question import AnswerGatewayQuestion, AnswerGatewayQuestionCommand
from application.gateway.calls.ask_client import AskableClient, Question
from domain.errors import ErrorKind, ServiceError
from domain.gateway.session import GatewaySession
from domain.ids import GatewayNoteId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.client_request import ClientRequestKind
from interfaces.gateway.exchange import Exchange, Tell
from interfaces.gateway.messages import INVALID_PARAMS, INVALID_REQUEST, RpcError, RpcResponse

MISSING_CAPABILITY = -32021
"""MCP 2026-07-28, basic: the request needs a capability that the client did not declare."""
_CAPABILITIES = frozenset(kind.capability for kind in ClientRequestKind)


def askable_client(exchange: Exchange) -> AskableClient | None:
    """How the client of a call can be asked; None if it cannot. A legacy client is asked on the
    stream of its call."""
    capabilities, tell = exchange.envelope.capabilities, exchange.tell
    if exchange.envelope.is_modern:
        return AskableClient(capabilities=capabilities)
    if tell is None or _CAPABILITIES.isdisjoint(capabilities):
        return None
    left, known = exchange.left or asyncio.Event(), exchange.envelope.client
    return _OnStream(tell).client(capabilities, left, client_id="" if known is None else known.id)


class _OnStream:
    """Asks with requests of the gateway; the client posts its answers."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def client(self, capabilities: JsonObject, left: asyncio.Event, *, client_id: str) -> AskableClient:
        asking, taking_back = self._ask, self._take_back
        return AskableClient(capabilities=capabilities, ask=asking, take_back=taking_back, left=left, id=client_id)

    async def _ask(self, questions: tuple[Question, ...]) -> None:
        for note_id, request in questions:
            params = dict(request.params)
            if params.get("mode") == "url":
                params["elicitationId"] = note_id  # required by legacy versions
            await self._tell({"jsonrpc": "2.0", "id": note_id, "method": request.kind.value, "params": params})

    async def _take_back(self, note_ids: tuple[GatewayNoteId, ...]) -> None:
        for note_id in note_ids:
            told: dict[str, object] = {"requestId": note_id, "reason": "The answer is no longer needed."}
            await self._tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": told})


def input_required(asked: InputRequested) -> dict[str, object]:
    """The response to a call that continues after the client has answered."""
    requests = {
        request.key: {"method": request.kind.value, "params": request.params}
        if request.params
        else {"method": request.kind.value}
        for request in asked.requests
    }
    return {"resultType": "input_required", "inputRequests": requests, "requestState": asked.request_state}


def input_responses(exchange: Exchange) -> Mapping[str, JsonValue]:
    """The client's answers in its request. Raises RpcError."""
    if not exchange.envelope.is_modern or "inputResponses" not in exchange.message.params:
        return {}
    responses = exchange.message.params["inputResponses"]
    if not isinstance(responses, dict) or not all(isinstance(answer, dict) for answer in responses.values()):
        raise RpcError(INVALID_PARAMS, "params.inputResponses must be an object of answers.")
    return responses


def missing_capability(missing: JsonObject) -> RpcError:
    """The server refuses the call of a client that cannot answer its requests."""
    names = ", ".join(missing)
    return RpcError(
        MISSING_CAPABILITY,
        f"The server needs a client with {names}. The call was not executed.",
        data={"requiredCapabilities": missing},
        status=400,
    )


class GatewayQuestions:
    """Accepts the answers that legacy clients post."""

    def __init__(self, *, answer_question: AnswerGatewayQuestion) -> None:
        self._answer_question = answer_question

    async def answered(self, session: GatewaySession, response: RpcResponse) -> None:
        """Pass the answer on. Raises RpcError if no request waits for it, or if it is invalid."""
        refusal = None
        if response.error is not None:
            said = response.error.get("message") if isinstance(response.error, dict) else None
            refusal = said if isinstance(said, str) else ""
        command = AnswerGatewayQuestionCommand(
            session=session, question_id=str(response.id), result=response.result, refusal=refusal
        )
        try:
            await self._answer_question.execute(command)
        except ServiceError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                detail = "No request is waiting for this answer."
                raise RpcError(INVALID_REQUEST, detail, status=400) from error
            if error.kind is ErrorKind.INVALID:
                raise RpcError(INVALID_PARAMS, error.detail, data={"code": error.code}, status=400) from error
            raise
