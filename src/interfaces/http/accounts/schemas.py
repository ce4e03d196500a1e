"""Body of the account routes."""

from typing import ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from interfaces.http.bodies import Body


class AccountSecretsBody(Body):
    """The caller's secrets for an MCP server. The values are write-only."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"secrets": {"token": "…"}},)

    secrets: dict[str, str] = Field(
        description="Values by the names in `secrets` of the account. Those that are not given again stay.", repr=False
    )
    offer: str | None = Field(
        default=None, description="`offer` of the account, to be refused (409) if the server has changed meanwhile."
    )
    address: str | None = Field(
        default=None, description="`address` of the account, to be refused (409) if it has changed meanwhile."
    )
