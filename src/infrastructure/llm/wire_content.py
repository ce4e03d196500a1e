"""Content in forms that all providers accept."""

from domain.json_value import JsonObject
from domain.threads.message import ImageContent, ToolUse


def described_image(image: ImageContent) -> str:
    """Text in place of an image for a model without image input."""
    if image.data is not None:
        size = len(image.data) * 3 // 4
        return f"[An image of type {image.media_type}, {size} bytes, which this model cannot see.]"
    return f"[An image of type {image.media_type} at {image.url}, which this model cannot see.]"


def wire_params(use: ToolUse) -> JsonObject:
    """Arguments of an earlier call. Providers require a JSON object, so malformed text is wrapped
    in one."""
    return use.params if use.malformed is None else malformed_params(use.malformed)


def malformed_params(text: str) -> JsonObject:
    """An object around arguments that are none."""
    return {"malformed_arguments": text}


def object_schema(parameters: JsonObject) -> JsonObject:
    """The schema with `type: object` and `properties`. Providers require the former, OpenAI also
    the latter; MCP servers omit them for tools without arguments."""
    if parameters.get("type") == "object" and "properties" in parameters:
        return parameters
    return {"properties": {}, **parameters, "type": "object"}
