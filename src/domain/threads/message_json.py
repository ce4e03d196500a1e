"""The one JSON format of messages and their content: in events, over HTTP, in storage and in
traces."""

from datetime import UTC, datetime
from typing import assert_never, cast

from domain.approvals.approval import PendingApproval
from domain.ids import ApprovalId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.elicitation import Elicitation
from domain.threads.attachments import without_file_bytes
from domain.threads.message import (
    Content,
    FileContent,
    ImageContent,
    Message,
    TextContent,
    ToolResultContent,
    ToolUse,
)


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def content_to_json(part: Content) -> JsonObject:
    """`{"type": "text" | "image" | "file" | "tool_use" | "tool_result",
    …}`; absent optional fields are omitted."""
    match part:
        case TextContent():
            return {"type": "text", "text": part.text}
        case ImageContent():
            return _image_to_json(part)
        case FileContent():
            return _file_to_json(part)
        case ToolUse():
            return tool_use_to_json(part)
        case ToolResultContent():
            result: JsonObject = {
                "type": "tool_result",
                "tool_id": part.tool_id,
                "tool_name": part.tool_name,
                "result": part.result,
                "is_error": part.is_error,
            }
            if part.images:
                result["images"] = [_image_to_json(image) for image in part.images]
            if part.files:
                result["files"] = [_file_to_json(file) for file in part.files]
            return result
        case _:
            assert_never(part)


def content_from_json(data: JsonObject) -> Content:
    """The inverse of `content_to_json`. Raises KeyError or ValueError for other input."""
    match data["type"]:
        case "text":
            return TextContent(text=cast(str, data["text"]))
        case "image":
            return _image_from_json(data)
        case "file":
            return _file_from_json(data)
        case "tool_use":
            asked = cast("JsonObject | None", data.get("elicitation"))
            return ToolUse(
                id=ToolCallId(cast(str, data["id"])),
                name=cast(str, data["name"]),
                params=cast(JsonObject, data["params"]),
                malformed=cast("str | None", data.get("malformed")),
                elicitation=None if asked is None else Elicitation.from_json(asked),
                approval=_approval_from_json(data),
            )
        case "tool_result":
            return ToolResultContent(
                tool_id=ToolCallId(cast(str, data["tool_id"])),
                tool_name=cast(str, data["tool_name"]),
                result=cast(str, data["result"]),
                is_error=cast(bool, data["is_error"]),
                images=tuple(_image_from_json(image) for image in cast("list[JsonObject]", data.get("images", []))),
                files=tuple(_file_from_json(file) for file in cast("list[JsonObject]", data.get("files", []))),
            )
        case unknown:
            raise ValueError(f"unknown content type {unknown!r}")


def message_to_json(message: Message) -> JsonObject:
    """`{id, role, content, created_at, run_id}`."""
    return _message_json(message, [content_to_json(part) for part in message.content])


def message_of_event(message: Message) -> JsonObject:
    """As `message_to_json`, with the sizes of files in place of their bytes."""
    return _message_json(message, [without_file_bytes(content_to_json(part)) for part in message.content])


def _message_json(message: Message, content: list[JsonValue]) -> JsonObject:
    return {
        "id": message.id,
        "role": str(message.role),
        "content": content,
        "created_at": timestamp(message.created_at),
        "run_id": message.run_id,
    }


def tool_use_to_json(use: ToolUse) -> JsonObject:
    """`{type, id, name, params}` and, where they apply:

    - `malformed`: the model's arguments were not a JSON object.
    - `elicitation`: the call's server waits for an answer.
    - `approval_id`, `expires_at`, `reason`: the call waits for an approval; with `outcome_unknown`,
      approving sends it again.
    """
    data: JsonObject = {"type": "tool_use", "id": use.id, "name": use.name, "params": use.params}
    if use.malformed is not None:
        data["malformed"] = use.malformed
    if use.elicitation is not None:
        data["elicitation"] = use.elicitation.as_json()
    if use.approval is not None:
        data["approval_id"] = use.approval.approval_id
        data["expires_at"] = timestamp(use.approval.expires_at)
        data["reason"] = use.approval.reason
        if use.approval.outcome_unknown:
            data["outcome_unknown"] = True
    return data


def _approval_from_json(data: JsonObject) -> PendingApproval | None:
    if "approval_id" not in data:
        return None
    return PendingApproval(
        approval_id=ApprovalId(cast(str, data["approval_id"])),
        expires_at=datetime.fromisoformat(cast(str, data["expires_at"])),
        reason=cast(str, data["reason"]),
        outcome_unknown=cast(bool, data.get("outcome_unknown", False)),
    )


def _image_to_json(image: ImageContent) -> JsonObject:
    data: JsonObject = {"type": "image", "media_type": image.media_type}
    if image.data is not None:
        data["data"] = image.data
    if image.url is not None:
        data["url"] = image.url
    return data


def _image_from_json(data: JsonObject) -> ImageContent:
    return ImageContent(
        media_type=cast(str, data["media_type"]),
        data=cast("str | None", data.get("data")),
        url=cast("str | None", data.get("url")),
    )


def _file_to_json(file: FileContent) -> JsonObject:
    data: JsonObject = {"type": "file", "media_type": file.media_type}
    optional = {"name": file.name, "data": file.data, "url": file.url}
    return {**data, **{name: value for name, value in optional.items() if value is not None}}


def _file_from_json(data: JsonObject) -> FileContent:
    return FileContent(
        media_type=cast(str, data["media_type"]),
        name=cast("str | None", data.get("name")),
        data=cast("str | None", data.get("data")),
        url=cast("str | None", data.get("url")),
    )
