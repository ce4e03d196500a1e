"""Questions of servers of the older generations, which come as requests of their own while calls are under way (MCP
2025-06-18 and 2025-11-25, client/elicitation, client/sampling, client/roots). Above: `server_session.py`. Below:
`input_requests.py`.

Where a caller can be asked, the server waits for its answer. In runs nobody can answer while the server waits, so it is told
that the question was dismissed, and the call is sent again once there is an answer, which then is given at once.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mcp.client.session import ClientRequestContext
from mcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
)
from pydantic import BaseModel, ValidationError

from application.mcp.caller_relay import CallerRelay
from application.mcp.ports import McpCall, McpFailure
from application.system.deadline import Deadline
from domain.json_value import JsonObject
from domain.mcp.client_request import ClientAnswer, ClientRequest, ClientRequestKind
from domain.mcp.elicitation import Elicitation
from infrastructure.mcp.connections.input_requests import read_question, read_request

_DISMISSED = ElicitResult(action="cancel")
_REFUSED = -1
"""The code for what a client does not want to answer (MCP client/sampling, error handling)."""


@dataclass(slots=True, kw_only=True)
class AskedCall:
    """A call under way: `answers` by question, and the questions that nobody has answered yet; or the `relay` that asks for
    them. `timeout` is the call's, which stands still meanwhile."""

    answers: Mapping[str, JsonObject]
    relay: CallerRelay | None = None
    questions: list[Elicitation] = field(default_factory=list)
    timeout: Deadline | None = None
    asking: set["asyncio.Task[Mapping[str, ClientAnswer]]"] = field(default_factory=set)
    left_s: float = 0.0

    def begin(self, task: "asyncio.Task[Mapping[str, ClientAnswer]]") -> None:
        """The caller is asked."""
        when = None if self.timeout is None else self.timeout.when()
        if self.timeout is not None and when is not None and not self.timeout.expired():
            self.left_s = when - asyncio.get_running_loop().time()
            self.timeout.reschedule(None)
        self.asking.add(task)

    def end(self, task: "asyncio.Task[Mapping[str, ClientAnswer]]") -> None:
        """The caller has answered, or does not any more."""
        self.asking.discard(task)
        if self.timeout is not None and not self.asking and self.timeout.when() is None:
            self.timeout.reschedule(asyncio.get_running_loop().time() + self.left_s)


class AskedCalls:
    """The calls under way on one connection. A question does not say which of them it is about: beside other calls it is
    dismissed without being asked."""

    def __init__(self) -> None:
        self._calls: list[AskedCall] = []

    @contextmanager
    def during(self, call: McpCall) -> Iterator[AskedCall]:
        """What is asked while the call is under way. With the call, its questions are over."""
        asked = AskedCall(answers=call.input_responses or {}, relay=call.relay)
        self._calls.append(asked)
        try:
            yield asked
        finally:
            self._calls.remove(asked)
            asked.timeout = None
            for task in asked.asking:
                task.cancel()

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """The SDK's callback: the answer that is there, or that the caller gives; else a dismissal."""
        raw = _raw(params)
        try:
            question = _named(read_question("", raw))
        except McpFailure:
            return _DISMISSED
        if len(self._calls) != 1:
            return _DISMISSED
        [asked] = self._calls
        if asked.relay is not None:
            given = await self._relayed(asked.relay, asked, ClientRequestKind.ELICITATION, raw)
            return _elicited(given.result)
        answer = asked.answers.get(question.request_id)
        if answer is None:
            if all(question != known for known in asked.questions):
                asked.questions.append(question)
            return _DISMISSED
        return _elicited(answer)

    async def sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        """The SDK's callback: the answer of the caller's model."""
        given = await self._passed(ClientRequestKind.SAMPLING, _raw(params))
        try:
            if given.result is not None and isinstance(given.result.get("content"), list):
                return CreateMessageResultWithTools.model_validate(given.result)
            if given.result is not None:
                return CreateMessageResult.model_validate(given.result)
        except ValidationError:
            return _refused("The client's answer is not valid MCP.")
        return _refused(given.refusal)

    async def roots(self, context: ClientRequestContext) -> ListRootsResult | ErrorData:
        """The SDK's callback: the caller's roots."""
        given = await self._passed(ClientRequestKind.ROOTS, {})
        if given.result is None:
            return _refused(given.refusal)
        try:
            return ListRootsResult.model_validate(given.result)
        except ValidationError:
            return _refused("The client's answer is not valid MCP.")

    async def _passed(self, kind: ClientRequestKind, raw: JsonObject) -> ClientAnswer:
        relay = self._calls[0].relay if len(self._calls) == 1 else None
        if relay is None:
            return ClientAnswer(refusal="Nobody can be asked.")
        return await self._relayed(relay, self._calls[0], kind, raw)

    async def _relayed(
        self, relay: CallerRelay, asked: AskedCall, kind: ClientRequestKind, raw: JsonObject
    ) -> ClientAnswer:
        try:
            request = read_request("", kind, raw)
        except McpFailure as failure:
            return ClientAnswer(refusal=failure.detail)
        task = asyncio.create_task(_asked(relay, request), name="mcp-asking")
        asked.begin(task)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            asked.end(task)
        if task.cancelled() or task.exception() is not None:
            return ClientAnswer(refusal="The call is over.")
        return task.result()[request.key]


async def _asked(relay: CallerRelay, request: ClientRequest) -> Mapping[str, ClientAnswer]:
    return await relay.ask((request,))


def _elicited(answer: JsonObject | None) -> ElicitResult:
    if answer is None:
        return _DISMISSED
    try:
        return ElicitResult.model_validate(answer)
    except ValidationError:  # the server's own schema allows what the protocol does not
        return _DISMISSED


def _refused(why: str) -> ErrorData:
    return ErrorData(code=_REFUSED, message=why or "The client does not answer.")


def _raw(params: BaseModel) -> JsonObject:
    return params.model_dump(by_alias=True, mode="json", exclude_none=True)


def _named(question: Elicitation) -> Elicitation:
    """Under a name by which the same question is known when it is asked again."""
    canonical = json.dumps(question.as_json(), sort_keys=True, separators=(",", ":"))
    return replace(question, request_id=hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16])
