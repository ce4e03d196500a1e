"""Requests of A2A, in ProtoJSON: names are accepted in both spellings, unknown fields are
ignored."""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from domain.a2a.tasks import TaskState
from domain.errors import Violation, invalid
from interfaces.http.bodies import Body, Name
from interfaces.http.webhooks.schemas import MAX_URL

MAX_PAGE = 100
MAX_SECRET = 4_096
_MAX_TEXT = 2_048

Id = Annotated[str, Field(min_length=1, max_length=256)]
Mode = Annotated[str, Field(max_length=128)]
Length = Annotated[int, Field(ge=0, le=2**31 - 1)] | None


class A2aBody(Body):
    """A JSON object of the protocol."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="ignore",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        defer_build=True,
        alias_generator=to_camel,
        validate_by_name=True,
    )


class PartBody(A2aBody):
    """Text, bytes in base64, a URL, or any JSON value."""

    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: object = None
    filename: Name | None = None
    media_type: Name | None = None

    def require_one(self, path: str) -> None:
        """Raises INVALID `body_invalid`."""
        given = [name for name in ("text", "raw", "url") if getattr(self, name) is not None]
        if len(given) + self.has_data != 1:
            wrong = Violation(path=path, message="must have exactly one of text, raw, url and data")
            raise invalid("body_invalid", "The request body is not valid.", wrong)

    @property
    def has_data(self) -> bool:
        """Null is data, too."""
        return "data" in self.model_fields_set


class MessageBody(A2aBody):
    message_id: Annotated[str, Field(min_length=1, max_length=256)]
    role: Literal["ROLE_USER"]
    parts: Annotated[list[PartBody], Field(min_length=1, max_length=1_000)]
    context_id: Annotated[str, Field(max_length=256)] | None = None
    task_id: Name | None = None


class AuthenticationBody(A2aBody):
    scheme: Annotated[str, Field(max_length=64)]
    credentials: Annotated[str, Field(max_length=MAX_SECRET)] | None = None


class PushBody(A2aBody):
    """A receiver of a task's states."""

    url: Annotated[str, Field(max_length=MAX_URL)]
    id: Annotated[str, Field(max_length=256)] | None = None
    token: Annotated[str, Field(max_length=MAX_SECRET)] | None = None
    authentication: AuthenticationBody | None = None


class CreatePushBody(PushBody):
    task_id: Id


class TaskPushesBody(A2aBody):
    """Names a task."""

    task_id: Id


class TaskPushBody(TaskPushesBody):
    """Names a config of a task."""

    id: Id


class ConfigurationBody(A2aBody):
    accepted_output_modes: Annotated[list[Mode], Field(max_length=100)] = Field(default_factory=list)
    history_length: Length = None
    return_immediately: bool = False
    task_push_notification_config: PushBody | None = None


class SendMessageBody(A2aBody):
    message: MessageBody
    configuration: ConfigurationBody | None = None


class TaskBody(A2aBody):
    """Names a task."""

    id: Id
    history_length: Length = None


class ListTasksBody(A2aBody):
    context_id: Annotated[str, Field(max_length=256)] | None = None
    status: Annotated[TaskState, Field(strict=False)] | Literal["TASK_STATE_UNSPECIFIED"] | None = None
    page_size: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50
    page_token: Annotated[str, Field(max_length=_MAX_TEXT)] | None = None
    history_length: Length = None
    status_timestamp_after: Annotated[str, Field(max_length=64)] | None = None
    include_artifacts: bool = False


class NothingBody(A2aBody):
    """A request without parameters."""
