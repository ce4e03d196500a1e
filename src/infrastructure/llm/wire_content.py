"""Content in forms that no provider refuses."""

from domain.json_value import JsonObject
from domain.threads.message import ImageContent, ToolUse


def described_image(image: ImageContent) -> str:
    """A stand-in for an image the model cannot take."""
    if image.data is not None:
        size = len(image.data) * 3 // 4
        return f"[An image of type {image.media_type}, {size} bytes, which this model cannot see.]"
    return f"[An image of type {image.media_type} at {image.url}, which this model cannot see.]"


def wire_params(use: ToolUse) -> JsonObject:
    """The arguments of an earlier call. Providers and chat templates insist on a JSON object, so text that was not one
    is shown to the model inside of one."""
    return use.params if use.malformed is None else {"malformed_arguments": use.malformed}


def object_schema(parameters: JsonObject) -> JsonObject:
    """The schema with `type: object` and `properties`: both providers refuse a tool without the former, OpenAI also one
    without the latter, which MCP servers leave out of tools that take no arguments."""
    if parameters.get("type") == "object" and "properties" in parameters:
        return parameters
    return {"properties": {}, **parameters, "type": "object"}
