"""Threads as messages of pydantic-ai."""

import base64
from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as LibraryRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from application.models.ports import ModelRequest
from domain.threads.message import Content, FileContent, ImageContent, Message, Role, TextContent, ToolResultContent
from domain.threads.provider_items import ProviderItems
from domain.tools.tool import Tool
from infrastructure.llm.model_inputs import ModelInput
from infrastructure.llm.wire_content import described_file, described_image, object_schema, readable, wire_params


def library_messages(request: ModelRequest, *, origin: str, takes: frozenset[ModelInput]) -> list[ModelMessage]:
    """The messages, those with items of `origin` as they came. Results have the ids of the calls
    before them."""
    messages: list[ModelMessage] = []
    ids: dict[str, str] = {}
    for message in request.messages:
        match message.role:
            case Role.SYSTEM:
                messages.append(LibraryRequest(parts=[SystemPromptPart(content=message.text)]))
            case Role.USER:
                content = [part for each in message.content for part in _user_content(each, takes)]
                messages.append(LibraryRequest(parts=[UserPromptPart(content=content)]))
            case Role.ASSISTANT:
                response = _as_it_came(message, origin) or _neutral(message)
                ids = _ids(message, response)
                if response.parts:
                    messages.append(response)
            case Role.TOOL:
                results = [_result(result, ids, takes) for result in message.tool_results]
                messages.append(LibraryRequest(parts=results))
    return messages


def library_parameters(request: ModelRequest) -> ModelRequestParameters:
    schema = request.output_schema
    return ModelRequestParameters(
        function_tools=[_tool(tool) for tool in request.tools],
        output_mode="text" if schema is None else "native",
        output_object=None if schema is None else OutputObjectDefinition(json_schema=schema, name="output"),
        allow_text_output=True,
        instruction_parts=[InstructionPart(content=request.system)] if request.system else None,
    )


def response_of(items: ProviderItems) -> ModelResponse | None:
    """The stored response; None if this version of the library cannot read it."""
    try:
        messages = ModelMessagesTypeAdapter.validate_json(items.data)
    except ValidationError:
        return None
    [response] = messages if len(messages) == 1 else [None]
    return response if isinstance(response, ModelResponse) else None


def _as_it_came(message: Message, origin: str) -> ModelResponse | None:
    """None for other messages, and for items whose calls are not those of the message."""
    if message.items is None or message.items.origin != origin:
        return None
    response = response_of(message.items)
    calls = [] if response is None else _calls(response)
    return response if len(calls) == len(message.tool_uses) else None


def _neutral(message: Message) -> ModelResponse:
    text = [TextPart(content=message.text)] if message.text else []
    calls = [ToolCallPart(tool_name=use.name, args=wire_params(use), tool_call_id=use.id) for use in message.tool_uses]
    return ModelResponse(parts=[*text, *calls])


def _ids(message: Message, response: ModelResponse) -> dict[str, str]:
    """Ids of calls in the response, by ours."""
    return {use.id: call.tool_call_id for use, call in zip(message.tool_uses, _calls(response), strict=True)}


def _calls(response: ModelResponse) -> Sequence[ToolCallPart]:
    return [part for part in response.parts if isinstance(part, ToolCallPart)]


def _result(result: ToolResultContent, ids: dict[str, str], takes: frozenset[ModelInput]) -> ToolReturnPart:
    attached = [_attached(part, takes) for part in result.attachments]
    return ToolReturnPart(
        tool_name=result.tool_name,
        content=[result.result, *attached] if attached else result.result,
        tool_call_id=ids.get(result.tool_id, result.tool_id),
        outcome="failed" if result.is_error else "success",
    )


def _user_content(part: Content, takes: frozenset[ModelInput]) -> list[UserContent]:
    match part:
        case TextContent():
            return [part.text]
        case ImageContent() | FileContent():
            return [_attached(part, takes)]
        case _:
            return []


def _attached(part: ImageContent | FileContent, takes: frozenset[ModelInput]) -> str | BinaryContent:
    """The library would read a URL itself, past the egress guard, so a part with one is
    described."""
    if part.url is not None:
        return described_image(part) if isinstance(part, ImageContent) else described_file(part)
    found = readable(part, takes)
    if isinstance(found, str):
        return found
    return BinaryContent(data=base64.b64decode(found.data or ""), media_type=found.media_type)


def _tool(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=object_schema(tool.parameters),
        strict=False,
    )
