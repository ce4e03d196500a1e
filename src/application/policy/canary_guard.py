"""Searches the content of a run for its agent's canary tokens, and removes them from stored and
shown content."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar, cast

from application.models.ports import ModelReply, ModelRequest, RequestedCall
from domain.agents.agent import Agent
from domain.ids import MessageId, RunId, ToolCallId
from domain.json_value import JsonObject
from domain.mcp.elicitation import InputRound
from domain.policy.canary import without_placeholders
from domain.policy.canary_scan import CanaryScanner, CanaryStream
from domain.runs.ledger import ToolCall
from domain.threads.attachments import text_of
from domain.threads.message import (
    Content,
    FileContent,
    ImageContent,
    Message,
    TextContent,
    ToolResultContent,
    ToolUse,
    UserContent,
)
from domain.tools.client_tool import ClientTool
from domain.tools.result import ToolResult

_Attached = TypeVar("_Attached", ImageContent, FileContent)
_SCANNERS = 16
"""A scanner takes a megabyte for each token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanReply:
    """A reply without tokens. `found` is the id of the first token, `call_index` the call that
    contained it, if any."""

    reply: ModelReply
    found: str | None = None
    call_index: int | None = None


class CanaryFound(Exception):
    """A canary token ends the run. Carries the content to store, without the token: the reply under
    its message's id, or the settled call."""

    def __init__(
        self,
        canary_id: str,
        *,
        reply: ModelReply | None = None,
        message_id: MessageId | None = None,
        call_index: int | None = None,
        tool_call_id: ToolCallId | None = None,
        settled: ToolCall | None = None,
    ) -> None:
        super().__init__(f"canary token {canary_id} was found")
        self.canary_id = canary_id
        self.reply = reply
        self.message_id = message_id
        self.call_index = call_index
        self.tool_call_id = tool_call_id
        self.settled = settled


@lru_cache(maxsize=_SCANNERS)
def _scanner(tokens: tuple[tuple[str, str], ...]) -> CanaryScanner:
    """The scanner of these tokens. Runs of an agent share it, except for tokens that differ per
    run."""
    return CanaryScanner(dict(tokens))


class CanaryGuard:
    """One per run and version of its agent. Without tokens everything passes unchanged, at no
    cost."""

    def __init__(self, tokens: dict[str, str]) -> None:
        self._tokens = tokens
        self._scanner = _scanner(tuple(tokens.items())) if tokens else None
        self._shown_system: tuple[str, str] | None = None
        self._seen: dict[ToolCallId, str] = {}

    @classmethod
    def of(cls, agent: Agent, run_id: RunId) -> "CanaryGuard":
        return cls({token.id: token.in_run(run_id) for token in agent.config.canary_tokens})

    @classmethod
    async def prepared(cls, agent: Agent, run_id: RunId) -> "CanaryGuard":
        """As `of`, without holding the event loop: the forms of a token take about ten
        milliseconds."""
        return await asyncio.to_thread(cls.of, agent, run_id) if agent.config.canary_tokens else cls.of(agent, run_id)

    # --- input: tokens in people's texts are replaced, without further effect ---

    def filled(self, system: str) -> str:
        """The system prompt with the tokens instead of their placeholders."""
        return without_placeholders(system, self._tokens) if self._tokens else system

    def input(self, content: tuple[UserContent, ...]) -> tuple[UserContent, ...]:
        return cast("tuple[UserContent, ...]", self._contents(content))

    def words(self, text: str) -> str:
        """A text outside the conversation, such as the reason of a denial."""
        return text if self._scanner is None else self._scanner.clean(text).text

    def client_tool(self, tool: ClientTool) -> ClientTool:
        """A function of the client. A name with a token becomes one that no model takes."""
        if self._scanner is None:
            return tool
        name, description = self.words(tool.name), self.words(tool.description)
        return ClientTool(name=name, description=description, parameters=self.without(tool.parameters))

    def message(self, message: Message) -> Message:
        """A message of the thread, of any author. A message with a token has no provider's
        items."""
        if self._scanner is None:
            return message
        content = self._contents(message.content)
        return message if content == message.content else replace(message, content=content, items=None)

    def call(self, call: ToolCall) -> ToolCall:
        """A ledger entry settled by a client or an earlier worker."""
        return call if call.result is None else replace(call, result=self.result(call.result)[0])

    # --- output: a token ends the run ---

    def stream(self) -> CanaryStream | None:
        """For the streamed text of one reply; None without tokens."""
        return None if self._scanner is None else CanaryStream(self._scanner)

    def reply(self, reply: ModelReply) -> CleanReply:
        """A complete reply: its text, and the names and arguments of its calls."""
        if self._scanner is None:
            return CleanReply(reply=reply)
        text = self._scanner.clean(reply.text)
        found, call_index = text.found, None
        calls: list[RequestedCall] = []
        for index, call in enumerate(reply.calls):
            clean, in_call = self._requested(call)
            calls.append(clean)
            if found is None and in_call is not None:
                found, call_index = in_call, index
        if found is None:
            return CleanReply(reply=reply)
        clean_reply = replace(reply, text=text.text, calls=tuple(calls), items=None)
        return CleanReply(reply=clean_reply, found=found, call_index=call_index)

    def arguments(self, arguments: JsonObject) -> str | None:
        """The id of a token in arguments for a tool."""
        return None if self._scanner is None else self._scanner.clean_json(arguments).found

    def without(self, arguments: JsonObject) -> JsonObject:
        """Arguments without tokens."""
        return arguments if self._scanner is None else cast(JsonObject, self._scanner.clean_json(arguments).value)

    def result(self, result: ToolResult) -> tuple[ToolResult, str | None]:
        """An outcome without tokens, and the id of the first one. An image or file with a token is
        left out."""
        if self._scanner is None:
            return result, None
        text = self._scanner.clean(result.text)
        attached: list[ImageContent | FileContent] = [*result.images, *result.files]
        found = text.found or next(filter(None, map(self._in_attachment, attached)), None)
        if found is None:
            return result, None
        images, files = self._without_tokens(result.images), self._without_tokens(result.files)
        return replace(result, text=text.text, images=images, files=files), found

    def progress(self, call_id: ToolCallId, data: JsonObject) -> JsonObject:
        """Progress of a running call. A token in it is remembered until the call has ended."""
        if self._scanner is None:
            return data
        clean = self._scanner.clean_json(data)
        if clean.found is not None:
            self._seen.setdefault(call_id, clean.found)
        return cast(JsonObject, clean.value)

    def watch_of(self, call_id: ToolCallId) -> Callable[[str], bool] | None:
        """A function that says whether a text of the call contains a token, which is remembered
        until the call has ended. None without tokens."""
        scanner = self._scanner
        if scanner is None:
            return None

        def holds_canary(text: str) -> bool:
            found = scanner.clean(text).found if scanner.found_in(text) else None
            if found is not None:
                self._seen.setdefault(call_id, found)
            return found is not None

        return holds_canary

    def seen(self, call_id: ToolCallId) -> str | None:
        """The id of a token in the call's progress or stored texts."""
        return self._seen.get(call_id)

    def questions(self, asked: InputRound) -> str | None:
        """The id of a token in the questions of a call's server."""
        if self._scanner is None:
            return None
        found = (self._scanner.clean_json(question.as_json()).found for question in asked.questions)
        return next(filter(None, found), None)

    # --- for tracing ---

    def traced(self, request: ModelRequest) -> ModelRequest:
        """The request without the tokens of its system prompt; its messages contain none."""
        if self._scanner is None:
            return request
        if self._shown_system is None or self._shown_system[0] != request.system:
            self._shown_system = (request.system, self._scanner.clean(request.system).text)
        return replace(request, system=self._shown_system[1])

    def _requested(self, call: RequestedCall) -> tuple[RequestedCall, str | None]:
        scanner = self._watching()
        name = scanner.clean(call.name)
        arguments = scanner.clean_json(call.arguments)
        malformed = None if call.malformed is None else scanner.clean(call.malformed)
        found = name.found or arguments.found or (None if malformed is None else malformed.found)
        if found is None:
            return call, None
        clean = replace(
            call,
            name=name.text,
            arguments=cast(JsonObject, arguments.value),
            malformed=None if malformed is None else malformed.text,
        )
        return clean, found

    def _contents(self, contents: Iterable[Content]) -> tuple[Content, ...]:
        return tuple(contents) if self._scanner is None else tuple(self._content(part) for part in contents)

    def _content(self, part: Content) -> Content:
        scanner = self._watching()
        match part:
            case TextContent():
                text = scanner.clean(part.text)
                return part if text.found is None else TextContent(text=text.text)
            case ToolUse():
                clean, found = self._requested(
                    RequestedCall(name=part.name, arguments=part.params, malformed=part.malformed)
                )
                if found is None:
                    return part
                return replace(part, name=clean.name, params=clean.arguments, malformed=clean.malformed)
            case ToolResultContent():
                text = scanner.clean(part.result)
                images, files = self._without_tokens(part.images), self._without_tokens(part.files)
                if text.found is None and images == part.images and files == part.files:
                    return part
                return replace(part, result=text.text, images=images, files=files)
            case ImageContent() | FileContent():
                found_id = self._in_attachment(part)
                return part if found_id is None else TextContent(text=f"[canary:{found_id}]")

    def _without_tokens(self, attached: tuple[_Attached, ...]) -> tuple[_Attached, ...]:
        return tuple([part for part in attached if self._in_attachment(part) is None])

    def _in_attachment(self, part: ImageContent | FileContent) -> str | None:
        """The id of a token in the name, address or bytes, and in the text of a text file."""
        texts = [part.data or part.url or ""]
        if isinstance(part, FileContent):
            texts += [part.name or "", text_of(part) or ""]
        return next(filter(None, (self._watching().clean(text).found for text in texts)), None)

    def _watching(self) -> CanaryScanner:
        assert self._scanner is not None
        return self._scanner
