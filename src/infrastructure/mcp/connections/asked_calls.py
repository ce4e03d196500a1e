"""Requests of legacy servers to the client during calls (MCP 2025-06-18 and 2025-11-25,
client/elicitation, client/sampling, client/roots).

Above: `server_session.py`. Below: `input_requests.py`.

- With a caller relay, the server waits for the caller's answer.
- In a run no person can answer in time: the question is dismissed, and the call is sent again with
  the answer later.
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
"""Error code for a request that the client rejects (MCP client/sampling, error handling)."""


@dataclass(slots=True, kw_only=True)
class AskedCall:
    """A call in progress.

    - `answers`: known answers by question; `questions`: questions without an answer.
    - `relay`: passes requests to the caller.
    - `timeout`: the timeout of the call, paused while the caller is asked.
    """

    answers: Mapping[str, JsonObject]
    relay: CallerRelay | None = None
    questions: list[Elicitation] = field(default_factory=list)
    timeout: Deadline | None = None
    asking: set["asyncio.Task[Mapping[str, ClientAnswer]]"] = field(default_factory=set)
    left_s: float = 0.0

    def begin(self, task: "asyncio.Task[Mapping[str, ClientAnswer]]") -> None:
        """Pause the timeout: the caller is being asked."""
        when = None if self.timeout is None else self.timeout.when()
        if self.timeout is not None and when is not None and not self.timeout.expired():
            self.left_s = when - asyncio.get_running_loop().time()
            self.timeout.reschedule(None)
        self.asking.add(task)

    def end(self, task: "asyncio.Task[Mapping[str, ClientAnswer]]") -> None:
        """Resume the timeout: the caller has answered, or was cancelled."""
        self.asking.discard(task)
        if self.timeout is not None and not self.asking and self.timeout.when() is None:
            self.timeout.reschedule(asyncio.get_running_loop().time() + self.left_s)


class AskedCalls:
    """The calls in progress on one connection. A request does not name its call. With several calls
    of one caller, it goes to that caller, by the oldest call that asks nothing yet. With calls of
    several callers it is dismissed."""

    def __init__(self) -> None:
        self._calls: list[AskedCall] = []

    @contextmanager
    def during(self, call: McpCall) -> Iterator[AskedCall]:
        """Collect the requests of the call; its open requests are cancelled when it ends."""
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
        """Callback of the SDK: a known answer, the caller's answer, or a dismissal."""
        raw = _raw(params)
        try:
            question = _named(read_question("", raw))
        except McpFailure:
            return _DISMISSED
        asked = self._asking()
        if asked is None:
            return _DISMISSED
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
        """Callback of the SDK: the answer of the caller's model."""
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
        """Callback of the SDK: the caller's roots."""
        given = await self._passed(ClientRequestKind.ROOTS, {})
        if given.result is None:
            return _refused(given.refusal)
        try:
            return ListRootsResult.model_validate(given.result)
        except ValidationError:
            return _refused("The client's answer is not valid MCP.")

    async def _passed(self, kind: ClientRequestKind, raw: JsonObject) -> ClientAnswer:
        asked = self._asking()
        if asked is None or asked.relay is None:
            return ClientAnswer(refusal="No client can be asked.")
        return await self._relayed(asked.relay, asked, kind, raw)

    def _asking(self) -> AskedCall | None:
        """The call that a request is taken for, if it is known whose it is."""
        if len(self._calls) == 1:
            return self._calls[0]
        callers = {None if call.relay is None else call.relay.caller for call in self._calls}
        if len(callers) != 1 or None in callers:
            return None
        return next((call for call in self._calls if not call.asking), self._calls[0])

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
    except ValidationError:  # the server's schema allows answers that the protocol does not
        return _DISMISSED


def _refused(why: str) -> ErrorData:
    return ErrorData(code=_REFUSED, message=why or "The client does not answer.")


def _raw(params: BaseModel) -> JsonObject:
    return params.model_dump(by_alias=True, mode="json", exclude_none=True)


def _named(question: Elicitation) -> Elicitation:
    """Give the question an id derived from its content, so that a repeated question is
    recognized."""
    canonical = json.dumps(question.as_json(), sort_keys=True, separators=(",", ":"))
    return replace(question, request_id=hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16])
