"""Bodies of the thread routes, and user content in parts."""

import base64
import binascii
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Discriminator, Field, Tag

from domain.errors import Violation, invalid
from domain.json_value import JsonObject
from domain.threads.message import ImageContent, Role, TextContent, UserContent
from interfaces.http.bodies import Body
from interfaces.http.threads.content_views import ImageView, TextView
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


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


def _form(value: object) -> str:
    return "text" if isinstance(value, str) else "parts"


_Parts = Annotated[list[Part], Field(max_length=1_000)]
UserInput = Annotated[Annotated[str, Tag("text")] | Annotated[_Parts, Tag("parts")], Discriminator(_form)]
"""`"text"`, or a list of parts."""


class CreateThreadBody(Body):
    """A thread; `metadata` is for the client's use."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"metadata": {"ticket": "T-7"}},)

    shown_as: ClassVar[type] = ThreadView

    metadata: dict[str, object] = Field(default_factory=dict)

    def to_metadata(self) -> JsonObject:
        """Decoded JSON, so the cast is safe."""
        return cast(JsonObject, self.metadata)


class AppendMessageBody(Body):
    """A message outside of a run."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"role": "user", "content": "We use UTC everywhere."},)

    role: Literal["user", "assistant"] = Field(description="Author of the message.")
    content: UserInput = Field(description="Text, or parts of type text and image.")

    def to_role(self) -> Role:
        return Role(self.role)

    def to_content(self) -> tuple[UserContent, ...]:
        """Raises INVALID `body_invalid`."""
        return user_content(self.content, "content")


def user_content(given: str | list[TextPart | ImagePart], path: str) -> tuple[UserContent, ...]:
    """Parts as content. Raises INVALID `body_invalid`, with paths below `path`."""
    if isinstance(given, str):
        return (TextContent(text=given),)
    wrong = [
        Violation(path=f"{path}.{index}", message=fault)
        for index, part in enumerate(given)
        if isinstance(part, ImagePart) and (fault := _image_fault(part)) is not None
    ]
    if wrong:
        raise invalid("body_invalid", "The request body is not valid.", *wrong)
    return tuple(
        TextContent(text=part.text)
        if isinstance(part, TextPart)
        else ImageContent(media_type=part.media_type, data=part.data, url=part.url)
        for part in given
    )


def _image_fault(part: ImagePart) -> str | None:
    if (part.data is None) == (part.url is None):
        return "needs exactly one of data and url"
    if part.data is not None:
        try:
            base64.b64decode(part.data, validate=True)
        except (binascii.Error, ValueError):
            return "data must be base64"
    return None
