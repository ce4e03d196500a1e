"""Body of the API key routes."""

from typing import Annotated

from pydantic import ConfigDict, Field

from domain.identity.role import Role
from interfaces.http.bodies import Body


class CreateApiKeyBody(Body):
    """A key: `viewer` reads, `runner` also starts runs, `operator` also connects servers, `admin` changes all."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ci", "role": "runner"}]})

    name: str
    role: Annotated[Role, Field(strict=False)]
