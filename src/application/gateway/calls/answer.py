"""What a client is told of its call; and how that goes from the process that made the call to the one that answers."""

from dataclasses import dataclass, field
from typing import cast

from application.gateway.calls.clear_call import Waiting
from application.mcp.ports import McpReply
from domain.ids import RunId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.client_request import ClientRequest
from domain.threads.message import ImageContent
from domain.tools.result import ToolOutcome, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The call waits for the client, who comes back with answers by the requests' keys, and with the sealed `request_state`."""

    requests: tuple[ClientRequest, ...]
    request_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAnswer:
    """What the client is told. `reply` is what the MCP server answered, where all of it may be passed on; then it says more
    than the text of `result`, which is for models. `waiting`: the call was not sent, as it waits for an approval; `result`
    says so to clients that cannot be given the state. `asked`: it is not finished, and nothing of `result` is told. `missing`
    are capabilities without which the server does not make the call. `uris_of` is the slug of the server whose own URIs are in
    `reply`, for clients that know its resources by other ones. `begun` are the call of an agent and its run."""

    result: ToolResult
    reply: McpReply | None = None
    waiting: Waiting | None = None
    asked: Asked | None = None
    missing: JsonObject = field(default_factory=dict)
    uris_of: str | None = None
    begun: tuple[ToolCallId, RunId] | None = None

    def as_json(self) -> JsonObject:
        """Of a finished call, to be encrypted: all that a client is told."""
        raw = None if self.reply is None or self.reply.raw is None else cast(JsonValue, self.reply.raw)
        images: list[JsonValue] = [
            {"media_type": image.media_type, "data": image.data, "url": image.url} for image in self.result.images
        ]
        return {
            "outcome": self.result.outcome.value,
            "text": self.result.text,
            "error_code": self.result.error_code,
            "images": images,
            "raw": raw,
            "missing": self.missing,
            "uris_of": self.uris_of,
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> "GatewayAnswer":
        """The inverse of `as_json`, as far as clients can tell."""
        images = cast("list[dict[str, str | None]]", data["images"])
        raw = cast("JsonObject | None", data["raw"])
        result = ToolResult(
            outcome=ToolOutcome(cast(str, data["outcome"])),
            text=cast(str, data["text"]),
            error_code=cast("str | None", data["error_code"]),
            images=tuple(
                ImageContent(media_type=image["media_type"] or "", data=image["data"], url=image["url"])
                for image in images
            ),
        )
        reply = None if raw is None else McpReply(is_error=result.is_error, content=(), raw=raw)
        return cls(
            result=result,
            reply=reply,
            missing=cast(JsonObject, data["missing"]),
            uris_of=cast("str | None", data["uris_of"]),
        )
