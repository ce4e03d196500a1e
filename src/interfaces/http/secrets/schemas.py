"""Body of the secret routes."""

from typing import ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from interfaces.http.bodies import Body


class SetSecretBody(Body):
    """A named secret. The value is write-only."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"name": "GITHUB_TOKEN", "value": "…"},)

    name: str = Field(description='[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}; `{"secret": NAME}` refers to it.')
    value: str = Field(description="Up to 64 KiB of text. Write-only.", repr=False)
