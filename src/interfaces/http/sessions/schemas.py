"""Body of the session routes."""

from typing import ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from interfaces.http.bodies import Body


class EndSessionsBody(Body):
    """Whose sessions end."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"holder": "usr_0123"}, {})

    holder: str | None = Field(
        default=None, min_length=1, max_length=100, description="Id of a user or an API key. By default the caller."
    )
