"""A thread as the loop keeps it: replies with their items become messages, results follow, requests
hold them all."""

from dataclasses import replace

from application.models.ports import LanguageModel, ModelReply, ModelRequest, ReasoningDelta, TextDelta
from domain.ids import tool_call_id
from domain.json_value import JsonObject
from domain.runs.model_settings import ModelSettings
from domain.threads.message import ImageContent, Message, Role, TextContent, ToolUse
from domain.tools.tool import Tool
from tests.builders import RUN, a_message, a_tool
from tests.unit.llm.model_requests import a_request, a_result, a_tool_message, a_user_message, all_events

TOOLS = (a_tool("mcp__files__echo"), a_tool("mcp__clock__now"))


class Conversation:
    """One thread, whose model may change from turn to turn."""

    def __init__(
        self,
        question: str = "What time is it?",
        *,
        tools: tuple[Tool, ...] = TOOLS,
        settings: ModelSettings | None = None,
        output_schema: JsonObject | None = None,
    ) -> None:
        self.messages: list[Message] = [a_user_message(question)]
        self.replies: list[ModelReply] = []
        self._tools = tools
        self._settings = settings
        self._output_schema = output_schema

    async def ask(self, model: LanguageModel, name: str, *, reasoning_summary: bool = False) -> ModelReply:
        """The model's reply, which the thread then has. Deltas must make up its text."""
        events = await all_events(model.stream(self.request(name, reasoning_summary=reasoning_summary)))
        reply = events[-1]
        assert isinstance(reply, ModelReply)
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.text
        self.reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        self.replies.append(reply)
        turn = len(self.replies)
        uses = [
            ToolUse(id=tool_call_id(RUN, turn, index), name=call.name, params=call.arguments, malformed=call.malformed)
            for index, call in enumerate(reply.calls)
        ]
        text = (TextContent(text=reply.text),) if reply.text else ()
        message = a_message(self._next(), run_id=RUN, role=Role.ASSISTANT, content=(*text, *uses))
        self.messages.append(replace(message, items=reply.items))
        return reply

    def answer(self, *results: str, images: tuple[ImageContent, ...] = ()) -> None:
        """Results of the last reply's calls, the images with the first."""
        uses = self.messages[-1].tool_uses
        contents = [
            a_result(use, result, images=images if index == 0 else ())
            for index, (use, result) in enumerate(zip(uses, results, strict=True))
        ]
        self.messages.append(a_tool_message(*contents, number=self._next()))

    def say(self, text: str) -> None:
        """Another question of the user."""
        self.messages.append(a_user_message(text, number=self._next()))

    def request(self, name: str, *, reasoning_summary: bool = False) -> ModelRequest:
        request = a_request(name, messages=tuple(self.messages), tools=self._tools, turn=len(self.replies) + 1)
        return replace(
            request,
            reasoning_summary=reasoning_summary,
            settings=self._settings,
            output_schema=self._output_schema,
        )

    def _next(self) -> int:
        return len(self.messages) + 1
