"""Requests to models with sensible defaults, and what came of them."""

from collections.abc import AsyncIterator

from application.models.ports import ModelEvent, ModelReply, ModelRequest, RetryLimits, TextDelta, ToolChoice
from domain.ids import OrganizationId, tool_call_id
from domain.json_value import JsonObject
from domain.threads.message import FileContent, ImageContent, Message, Role, TextContent, ToolResultContent, ToolUse
from domain.tools.tool import Tool
from infrastructure.llm.model_inputs import ModelInput
from infrastructure.llm.providers import ProviderConfig
from tests.builders import ORG, RUN, a_message

SEES = frozenset({ModelInput.IMAGE})
PIXEL = ImageContent(media_type="image/png", data="iVBORw0KGgo=")


def a_request(
    model: str = "openai:gpt-test",
    *,
    turn: int = 1,
    system: str = "Answer briefly.",
    messages: tuple[Message, ...] | None = None,
    tools: tuple[Tool, ...] = (),
    tool_choice: ToolChoice = ToolChoice.AUTO,
    max_output_tokens: int | None = None,
    retries: RetryLimits | None = None,
) -> ModelRequest:
    return ModelRequest(
        organization_id=ORG,
        run_id=RUN,
        turn=turn,
        model=model,
        system=system,
        messages=(a_user_message(),) if messages is None else messages,
        tools=tools,
        tool_choice=tool_choice,
        max_output_tokens=max_output_tokens,
        retries=retries or RetryLimits(),
    )


def a_user_message(text: str = "What time is it?", number: int = 1) -> Message:
    return a_message(number, text, run_id=RUN)


def a_use(
    index: int = 0, *, turn: int = 1, name: str = "mcp__files__echo", params: JsonObject | None = None
) -> ToolUse:
    return ToolUse(id=tool_call_id(RUN, turn, index), name=name, params={"text": "hi"} if params is None else params)


def an_assistant_message(*uses: ToolUse, text: str = "Let me look.", number: int = 2) -> Message:
    said = (TextContent(text=text),) if text else ()
    return a_message(number, run_id=RUN, role=Role.ASSISTANT, content=(*said, *uses))


def a_result(
    use: ToolUse,
    result: str = "done",
    *,
    is_error: bool = False,
    images: tuple[ImageContent, ...] = (),
    files: tuple[FileContent, ...] = (),
) -> ToolResultContent:
    return ToolResultContent(
        tool_id=use.id, tool_name=use.name, result=result, is_error=is_error, images=images, files=files
    )


def a_tool_message(*results: ToolResultContent, number: int = 3) -> Message:
    return a_message(number, run_id=RUN, role=Role.TOOL, content=results)


async def all_events(stream: AsyncIterator[ModelEvent]) -> list[ModelEvent]:
    return [event async for event in stream]


async def reply_of(stream: AsyncIterator[ModelEvent]) -> ModelReply:
    """The reply, having checked that it comes last and that the deltas make up its text."""
    events = await all_events(stream)
    reply = events[-1]
    assert isinstance(reply, ModelReply)
    deltas = [event for event in events[:-1] if isinstance(event, TextDelta)]
    assert len(deltas) == len(events) - 1
    assert "".join(delta.text for delta in deltas) == reply.text
    return reply


class SomeProviders:
    """The providers of a routing: the same for every organization."""

    def __init__(self, *providers: ProviderConfig) -> None:
        self._providers = {provider.name: provider for provider in providers}

    async def find(self, organization_id: OrganizationId, name: str) -> ProviderConfig | None:
        return self._providers.get(name)

    async def names(self, organization_id: OrganizationId) -> tuple[str, ...]:
        return tuple(sorted(self._providers))
