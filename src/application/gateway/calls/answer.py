"""The answer to a client's call, and its JSON form for transfer between processes."""

from dataclasses import dataclass, field
from typing import cast

from application.gateway.calls.clear_call import Waiting
from application.mcp.ports import McpReply
from domain.ids import RunId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.client_request import ClientRequest
from domain.threads.message import FileContent, ImageContent
from domain.threads.message_json import content_from_json, content_to_json
from domain.tools.result import ToolOutcome, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequested:
    """The call waits for input of the client. The client sends answers by the requests' keys, with
    the sealed `request_state`."""

    requests: tuple[ClientRequest, ...]
    request_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAnswer:
    """The answer to one call.

    - `reply`: the MCP server's whole answer, where it may be passed on. `result` is its text for
      models.
    - `waiting`: the call was not sent because it waits for an approval. `result` says so to
      clients that cannot send a state.
    - `asked`: the call is not finished; `result` is not sent to the client.
    - `missing`: client capabilities that the server requires for the call.
    - `uris_of`: slug of the server whose own URIs are in `reply`, if the client knows its
      resources by other URIs.
    - `begun`: the call of an agent, and the run that it started.
    - `called`: the tool that `call_tool` named.
    """

    result: ToolResult
    reply: McpReply | None = None
    waiting: Waiting | None = None
    asked: InputRequested | None = None
    missing: JsonObject = field(default_factory=dict)
    uris_of: str | None = None
    begun: tuple[ToolCallId, RunId] | None = None
    called: str | None = None

    def as_json(self) -> JsonObject:
        """The answer to a finished call, to be encrypted."""
        raw = None if self.reply is None or self.reply.raw is None else cast(JsonValue, self.reply.raw)
        images: list[JsonValue] = [
            {"media_type": image.media_type, "data": image.data, "url": image.url} for image in self.result.images
        ]
        return {
            "outcome": self.result.outcome.value,
            "text": self.result.text,
            "error_code": self.result.error_code,
            "images": images,
            "files": [content_to_json(file) for file in self.result.files],
            "raw": raw,
            "missing": self.missing,
            "uris_of": self.uris_of,
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> "GatewayAnswer":
        """The inverse of `as_json`."""
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
            files=tuple(
                cast(FileContent, content_from_json(file)) for file in cast("list[JsonObject]", data.get("files", []))
            ),
        )
        reply = None if raw is None else McpReply(is_error=result.is_error, content=(), raw=raw)
        return cls(
            result=result,
            reply=reply,
            missing=cast(JsonObject, data["missing"]),
            uris_of=cast("str | None", data["uris_of"]),
        )
