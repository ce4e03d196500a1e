"""Parts of messages as JSON, in the format of `domain/threads/message_json`."""

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypedDict

from interfaces.http.view_fields import OneOf, Timestamp


class TextView(TypedDict):
    """Text."""

    type: Annotated[Literal["text"], "Kind of the part."]
    text: Annotated[str, "The text."]


class ImageView(TypedDict):
    """An image: inline or by URL. Lists of runs have its size in place of its bytes."""

    type: Annotated[Literal["image"], "Kind of the part."]
    media_type: Annotated[str, "Media type, such as `image/png`."]
    data: NotRequired[Annotated[str, "The image in base64, if it is inline."]]
    url: NotRequired[Annotated[str, "Where the image is, if it is not inline."]]
    bytes: NotRequired[Annotated[int, "Size of an inline image that is shown without its bytes."]]


class FileView(TypedDict):
    """A file: inline or by URL. Events and lists have its size in place of its bytes."""

    type: Annotated[Literal["file"], "Kind of the part."]
    media_type: Annotated[str, "Media type, such as `application/pdf`."]
    name: NotRequired[Annotated[str, "Name of the file."]]
    data: NotRequired[Annotated[str, "The file in base64, if it is inline."]]
    url: NotRequired[Annotated[str, "Where the file is, if it is not inline."]]
    bytes: NotRequired[Annotated[int, "Size of an inline file that is shown without its bytes."]]


class ElicitationView(TypedDict):
    """Input that an MCP server requests in the middle of a call: a form, or a page to visit."""

    request_id: Annotated[str, "Id of the request within the call."]
    message: Annotated[str, "The question."]
    schema: NotRequired[Annotated[Mapping[str, object], "JSON Schema of the content of an answer, for a form."]]
    url: NotRequired[Annotated[str, "The page to visit, if it is no form."]]


class ToolUseView(TypedDict):
    """A tool call of the model."""

    type: Annotated[Literal["tool_use"], "Kind of the part."]
    id: Annotated[str, "Id of the tool call."]
    name: Annotated[str, "Name of the tool as models see it."]
    params: Annotated[Mapping[str, object], "Arguments of the call."]
    malformed: NotRequired[Annotated[str, "Arguments that were not a JSON object, as the model wrote them."]]
    elicitation: NotRequired[
        Annotated[ElicitationView, "What the call's server requests, while it waits for an answer."]
    ]
    approval_id: NotRequired[Annotated[str, "Id of the approval that the call waits for."]]
    expires_at: NotRequired[Annotated[Timestamp, "Time at which that approval expires."]]
    reason: NotRequired[Annotated[str, "Why the call requires an approval."]]
    outcome_unknown: NotRequired[Annotated[bool, "The call may have been sent before; approving sends it again."]]


class ToolResultView(TypedDict):
    """The result of a tool call."""

    type: Annotated[Literal["tool_result"], "Kind of the part."]
    tool_id: Annotated[str, "Id of the tool call."]
    tool_name: Annotated[str, "Name of the tool as models see it."]
    result: Annotated[str, "Text of the result."]
    is_error: Annotated[bool, "Whether the call failed."]
    images: NotRequired[Annotated[list[ImageView], "Images of the result."]]
    files: NotRequired[Annotated[list[FileView], "Files of the result."]]


InputPartView = Annotated[Mapping[str, object], OneOf("InputPartView", (TextView, ImageView, FileView))]
"""A part of a user's message."""
ContentView = Annotated[
    Mapping[str, object], OneOf("ContentView", (TextView, ImageView, FileView, ToolUseView, ToolResultView))
]
"""A part of any message."""
