"""Bodies of the thread routes, and user content in parts."""

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Discriminator, Field, Tag

from domain.errors import Violation, invalid
from domain.ids import SourceId
from domain.json_value import JsonObject
from domain.threads.attachments import IMAGE_TYPES, AttachedSource, require_few_attachments
from domain.threads.message import FileContent, ImageContent, Role, TextContent, UserContent
from interfaces.http.bodies import Body, Name
from interfaces.http.threads.content_views import FileView, ImageView, TextView
from interfaces.http.threads.views import ThreadView


class TextPart(Body):
    """Text."""

    shown_as: ClassVar[type] = TextView

    type: Literal["text"]
    text: str = Field(examples=["What changed last week?"])


class ImagePart(Body):
    """An image: inline in base64 (`data`) or by `url`."""

    shown_as: ClassVar[type] = ImageView

    type: Literal["image"]
    media_type: str = Field(pattern=r"^image/[a-z0-9.+-]+$", examples=["image/png"])
    data: str | None = None
    url: str | None = Field(default=None, pattern=r"^https?://")


class FilePart(Body):
    """A file (PDF, audio, text or any other): inline in base64 (`data`) or by `url`."""

    shown_as: ClassVar[type] = FileView

    type: Literal["file"]
    media_type: str = Field(pattern=r"^[a-z]+/[A-Za-z0-9.+-]{1,100}$", examples=["application/pdf"])
    name: Name | None = Field(default=None, examples=["contract.pdf"])
    data: str | None = None
    url: str | None = Field(default=None, pattern=r"^https?://")


class SourcePart(Body):
    """A source of the thread, attached as it is when the run starts."""

    type: Literal["source"] = Field(description="Kind of the part.")
    source_id: str = Field(description="Id of a source of the thread.")


Part = Annotated[TextPart | ImagePart | FilePart, Field(discriminator="type")]
RunPart = Annotated[TextPart | ImagePart | FilePart | SourcePart, Field(discriminator="type")]


def _form(value: object) -> str:
    return "text" if isinstance(value, str) else "parts"


_Parts = Annotated[list[Part], Field(max_length=1_000)]
UserInput = Annotated[Annotated[str, Tag("text")] | Annotated[_Parts, Tag("parts")], Discriminator(_form)]
"""`"text"`, or a list of parts."""
_RunParts = Annotated[list[RunPart], Field(max_length=1_000)]
RunInput = Annotated[Annotated[str, Tag("text")] | Annotated[_RunParts, Tag("parts")], Discriminator(_form)]
"""As `UserInput`, and sources of the thread."""


class CreateThreadBody(Body):
    """A thread; `metadata` is for the client's use."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"metadata": {"ticket": "T-7"}},)

    shown_as: ClassVar[type] = ThreadView

    metadata: dict[str, object] = Field(default_factory=dict)
    team: Name | None = None

    def to_metadata(self) -> JsonObject:
        """Decoded JSON, so the cast is safe."""
        return cast(JsonObject, self.metadata)


class ForkThreadBody(Body):
    """Which messages a fork begins with."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"before_message_id": "msg_0123"},)

    before_message_id: Name | None = Field(
        default=None,
        description="The first message that is not copied, of the role user; null copies all messages.",
    )
    metadata: dict[str, object] | None = Field(
        default=None, description="Data of the client; null takes that of the thread."
    )
    sources: bool = Field(
        default=True,
        description="Whether to copy the sources that were there before that message, 256 MiB in sum at most.",
    )

    def to_metadata(self) -> JsonObject | None:
        """Decoded JSON, so the cast is safe."""
        return cast("JsonObject | None", self.metadata)


class AppendMessageBody(Body):
    """A message outside of a run."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"role": "user", "content": "We use UTC everywhere."},)

    role: Literal["user", "assistant"] = Field(description="Author of the message.")
    content: UserInput = Field(description="Text, or parts of type text, image and file.")

    def to_role(self) -> Role:
        return Role(self.role)

    def to_content(self) -> tuple[UserContent, ...]:
        """Raises INVALID `body_invalid`."""
        return user_content(self.content, "content")


def user_content(given: str | list[TextPart | ImagePart | FilePart], path: str) -> tuple[UserContent, ...]:
    """Parts as content. Raises INVALID `body_invalid`, `attachments_too_large`, with paths below
    `path`."""
    if isinstance(given, str):
        return (TextContent(text=given),)
    _require_valid(given, path)
    content = tuple([_content_of(part) for part in given])
    require_few_attachments(content, path)
    return content


def run_content(
    given: str | list[TextPart | ImagePart | FilePart | SourcePart], path: str
) -> tuple[UserContent | AttachedSource, ...]:
    """As `user_content`, with sources of the thread, whose bytes the start of the run bounds."""
    if isinstance(given, str):
        return (TextContent(text=given),)
    _require_valid(given, path)
    content = tuple(
        [
            AttachedSource(source_id=SourceId(part.source_id)) if isinstance(part, SourcePart) else _content_of(part)
            for part in given
        ]
    )
    require_few_attachments(content, path)
    return content


def _require_valid(given: Sequence[TextPart | ImagePart | FilePart | SourcePart], path: str) -> None:
    wrong = [
        Violation(path=f"{path}.{index}", message=fault)
        for index, part in enumerate(given)
        if isinstance(part, ImagePart | FilePart) and (fault := _fault_of(part)) is not None
    ]
    if wrong:
        raise invalid("body_invalid", "The request body is not valid.", *wrong)


def _content_of(part: TextPart | ImagePart | FilePart) -> UserContent:
    if isinstance(part, TextPart):
        return TextContent(text=part.text)
    if isinstance(part, ImagePart) or part.media_type in IMAGE_TYPES:
        return ImageContent(media_type=part.media_type, data=part.data, url=part.url)
    return FileContent(media_type=part.media_type, name=part.name, data=part.data, url=part.url)


def _fault_of(part: ImagePart | FilePart) -> str | None:
    if (part.data is None) == (part.url is None):
        return "needs exactly one of data and url"
    if part.data is not None:
        try:
            base64.b64decode(part.data, validate=True)
        except (binascii.Error, ValueError):
            return "data must be base64"
    return None
