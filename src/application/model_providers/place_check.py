"""Checks of one place of a model provider: credentials, model, tool call, streaming."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from application.model_providers.ports import ProviderPlace
from application.models.ports import ModelError, ModelReply, ModelRequest
from application.system.ports import Clock, IdSource
from domain.ids import MessageId, OrganizationId, RunId, ThreadId, tool_call_id
from domain.model_providers.provider_check import ProviderCheck, ProviderCheckName, ProviderCheckOutcome
from domain.runs.provider_error import ProviderError
from domain.threads.message import Message, Role, TextContent, ToolResultContent, ToolUse
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool

MAX_OUTPUT_TOKENS = 2_048
"""Of each reply, with the tokens of reasoning."""
_TOOL = Tool(
    name="echo",
    type=ToolType.MCP_TOOL,
    description="Returns its text.",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
_Answer = TypeVar("_Answer")


_MODEL_CHECKS = (ProviderCheckName.MODEL, ProviderCheckName.TOOL_CALL, ProviderCheckName.STREAMING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    error: ModelError


class PlaceCheck:
    """Checks one place of a provider, with three short requests to one of its models at most.

    - A provider that does not list its models has its credentials checked by the first request.
    - After a failure, checks that need the same answer are skipped.
    - The tool call is a whole loop: many models refuse the turn after the result.
    - Each answer is awaited for `answer_s` at most.
    """

    def __init__(
        self,
        place: ProviderPlace,
        *,
        organization_id: OrganizationId,
        model: str | None,
        clock: Clock,
        ids: IdSource,
        answer_s: float,
    ) -> None:
        self._place = place
        self._organization_id = organization_id
        self._model = model
        self._clock = clock
        self._answer_s = answer_s
        self._run_id = RunId(ids.new("run"))
        self._thread_id = ThreadId(ids.new("thr"))
        self._new_message_id: Callable[[], MessageId] = lambda: MessageId(ids.new("msg"))

    async def run(self) -> tuple[ProviderCheck, ...]:
        listed, took_ms = await self._answer(self._place.model_list.names())
        if isinstance(listed, _Failure) and listed.error.code == "model_auth":
            refused = self._failed(ProviderCheckName.CREDENTIALS, listed.error, took_ms)
            return (refused, *self._skipped("The provider refused the key.", *_MODEL_CHECKS))
        if self._model is None:
            return (
                self._credentials(listed, None, took_ms),
                *self._skipped("No agent uses the provider; name a model to test.", *_MODEL_CHECKS),
            )
        reply, reply_ms = await self._answer(self._reply("Count from 1 to 20.", turn=1))
        credentials = self._credentials(listed, reply, took_ms)
        if isinstance(reply, _Failure):
            return (
                credentials,
                self._failed(ProviderCheckName.MODEL, reply.error, reply_ms),
                *self._skipped("The model did not answer.", ProviderCheckName.TOOL_CALL, ProviderCheckName.STREAMING),
            )
        said = f"{self._model} answered with {reply.usage.output_tokens} tokens."
        return (
            credentials,
            self._ok(ProviderCheckName.MODEL, said, reply_ms),
            await self._tool_call(),
            self._streaming(reply),
        )

    def _credentials(
        self, listed: tuple[str, ...] | _Failure, reply: ModelReply | _Failure | None, took_ms: int
    ) -> ProviderCheck:
        name = ProviderCheckName.CREDENTIALS
        if not isinstance(listed, _Failure):
            return self._ok(
                name, f"Accepted; the provider lists {len(listed)} model{'' if len(listed) == 1 else 's'}.", took_ms
            )
        if isinstance(reply, ModelReply):
            return self._ok(name, "Accepted by the model; the provider does not list its models.", took_ms)
        if reply is not None and reply.error.code == "model_auth":
            return self._failed(name, reply.error, took_ms)
        return self._failed(name, listed.error, took_ms)

    async def _tool_call(self) -> ProviderCheck:
        """The model calls a tool and takes its result."""
        name = ProviderCheckName.TOOL_CALL
        task = self._message(Role.USER, TextContent(text='Call the tool "echo" with the text "pong", then repeat it.'))
        asked, call_ms = await self._answer(self._reply_to((task,), turn=2))
        if isinstance(asked, _Failure):
            return self._failed(name, asked.error, call_ms)
        call = next((call for call in asked.calls if call.name == _TOOL.name and call.malformed is None), None)
        if call is None:
            return self._line(name, ProviderCheckOutcome.FAILED, "The model did not call the tool.", call_ms)
        answered, answer_ms = await self._answer(self._reply_to((task, *self._called(asked)), turn=3))
        if isinstance(answered, _Failure):
            return self._failed(name, answered.error, call_ms + answer_ms)
        return self._ok(name, "Called, and its result accepted.", call_ms + answer_ms)

    def _called(self, reply: ModelReply) -> tuple[Message, Message]:
        """The reply and the results of all its calls."""
        uses = [
            ToolUse(id=tool_call_id(self._run_id, 2, index), name=call.name, params=call.arguments)
            for index, call in enumerate(reply.calls)
        ]
        text = (TextContent(text=reply.text),) if reply.text else ()
        said = self._message(Role.ASSISTANT, *text, *uses)
        results = [
            ToolResultContent(tool_id=use.id, tool_name=use.name, result=str(use.params.get("text", "")))
            for use in uses
        ]
        return replace(said, items=reply.items), self._message(Role.TOOL, *results)

    def _streaming(self, reply: ModelReply) -> ProviderCheck:
        name = ProviderCheckName.STREAMING
        if reply.streamed:
            return self._ok(name, "The reply came as a stream.")
        return self._line(
            name, ProviderCheckOutcome.FAILED, "The reply came whole: runs work, and show their text late."
        )

    async def _reply(self, text: str, *, turn: int) -> ModelReply:
        return await self._reply_to((self._message(Role.USER, TextContent(text=text)),), turn=turn, tools=())

    async def _reply_to(
        self, messages: tuple[Message, ...], *, turn: int, tools: tuple[Tool, ...] = (_TOOL,)
    ) -> ModelReply:
        request = ModelRequest(
            organization_id=self._organization_id,
            run_id=self._run_id,
            turn=turn,
            model=self._model or "",
            system="This is a test of the connection. Answer in one line.",
            messages=messages,
            tools=tools,
            max_output_tokens=MAX_OUTPUT_TOKENS,
        )
        events = self._place.models.stream(request)
        try:
            async for event in events:
                if isinstance(event, ModelReply):
                    return event
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()
        raise ModelError("model_invalid_reply", "The model's stream had no reply.", retryable=False)

    async def _answer(self, asked: Awaitable[_Answer]) -> tuple[_Answer | _Failure, int]:
        """The answer or its error, and the milliseconds that it took."""
        began = self._clock.monotonic()
        answer: _Answer | _Failure
        try:
            async with asyncio.timeout(self._answer_s):
                answer = await asked
        except ModelError as error:
            answer = _Failure(error=error)
        except TimeoutError:
            late = f"The provider did not answer within {self._answer_s:g} seconds."
            answer = _Failure(error=ModelError("model_timeout", late, retryable=True))
        return answer, round((self._clock.monotonic() - began) * 1_000)

    def _message(self, role: Role, *content: TextContent | ToolUse | ToolResultContent) -> Message:
        return Message(
            id=self._new_message_id(),
            thread_id=self._thread_id,
            run_id=self._run_id,
            role=role,
            content=content,
            created_at=self._clock.now(),
        )

    def _ok(self, name: ProviderCheckName, detail: str, latency_ms: int = 0) -> ProviderCheck:
        return self._line(name, ProviderCheckOutcome.OK, detail, latency_ms)

    def _failed(self, name: ProviderCheckName, error: ModelError, latency_ms: int) -> ProviderCheck:
        said = None if error.provider_error is None else error.provider_error.shortened()
        return self._line(name, ProviderCheckOutcome.FAILED, error.detail, latency_ms, said)

    def _skipped(self, why: str, *names: ProviderCheckName) -> list[ProviderCheck]:
        return [self._line(name, ProviderCheckOutcome.SKIPPED, why) for name in names]

    def _line(
        self,
        name: ProviderCheckName,
        outcome: ProviderCheckOutcome,
        detail: str,
        latency_ms: int = 0,
        provider_error: ProviderError | None = None,
    ) -> ProviderCheck:
        return ProviderCheck(
            deployment=self._place.deployment,
            check=name,
            outcome=outcome,
            detail=detail,
            latency_ms=latency_ms,
            provider_error=provider_error,
        )
