"""Bodies of the routes of MCP registries."""

from typing import ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from domain.secrets.secret import SecretValue
from interfaces.http.bodies import Body
from interfaces.http.secrets.references import WriteOnly, secret_value


class AddRegistryServerBody(Body):
    """An entry of a registry to register as a server. Values of its `inputs` are texts, or
    references to named secrets (`{"secret": NAME}`)."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"version": "1.2.0", "slug": "tickets", "inputs": {"headers.Authorization": {"secret": "TICKETS_TOKEN"}}},
    )

    version: str = Field(default="latest", max_length=255, description="Version of the entry.")
    option: int = Field(default=0, ge=0, description="Number of one of the entry's options, from 0.")
    slug: str | None = Field(default=None, description="Slug of the server; null for the last part of the name.")
    inputs: dict[str, WriteOnly] = Field(
        default_factory=dict, max_length=200, description="Values of the entry's inputs, by their names."
    )

    def to_inputs(self) -> dict[str, SecretValue]:
        return {name: secret_value(value) for name, value in self.inputs.items()}
