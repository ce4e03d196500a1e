"""Body of the API key routes."""

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity.role import Role
from domain.json_value import JsonObject
from interfaces.http.bodies import Body, Name


class CreateApiKeyBody(Body):
    """A key: `viewer` reads, `runner` also starts runs, `operator` also connects servers, `admin` changes all."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"name": "ci", "role": "runner"},)

    name: Name
    role: Annotated[Role, Field(strict=False)]
