"""Questions of servers of the older generations, which come as requests of their own while calls are under way (MCP
2025-06-18 and 2025-11-25, client/elicitation). Above: `server_session.py`. Below: `input_requests.py`.

Nobody can answer while the server waits, so it is told that the question was dismissed, and the call is sent again once
there is an answer, which then is given at once.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult, ErrorData
from pydantic import ValidationError

from application.mcp.ports import McpCall, McpFailure
from domain.json_value import JsonObject
from domain.tools.elicitation import Elicitation
from infrastructure.mcp.input_requests import read_question

_DISMISSED = ElicitResult(action="cancel")


@dataclass(slots=True, kw_only=True)
class AskedCall:
    """A call under way: `answers` by question, and the questions that nobody has answered yet."""

    answers: Mapping[str, JsonObject]
    questions: list[Elicitation] = field(default_factory=list)


class AskedCalls:
    """The calls under way on one connection. A question does not say which of them it is about: beside other calls it is
    dismissed without being asked."""

    def __init__(self) -> None:
        self._calls: list[AskedCall] = []

    @contextmanager
    def during(self, call: McpCall) -> Iterator[AskedCall]:
        """What is asked while the call is under way."""
        asked = AskedCall(answers=call.input_responses or {})
        self._calls.append(asked)
        try:
            yield asked
        finally:
            self._calls.remove(asked)

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """The SDK's callback: the answer that is there, else a dismissal."""
        try:
            question = _named(read_question("", params.model_dump(by_alias=True, mode="json", exclude_none=True)))
        except McpFailure:
            return _DISMISSED
        if len(self._calls) != 1:
            return _DISMISSED
        [asked] = self._calls
        answer = asked.answers.get(question.request_id)
        if answer is None:
            if all(question != known for known in asked.questions):
                asked.questions.append(question)
            return _DISMISSED
        try:
            return ElicitResult.model_validate(answer)
        except ValidationError:  # the server's own schema allows what the protocol does not
            return _DISMISSED


def _named(question: Elicitation) -> Elicitation:
    """Under a name by which the same question is known when it is asked again."""
    canonical = json.dumps(question.as_json(), sort_keys=True, separators=(",", ":"))
    return replace(question, request_id=hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16])
