"""Bodies of the identity provider routes."""

from typing import Annotated, ClassVar

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticKnownError

from domain.identity.identity_provider import MAX_AUDIENCES, MAX_RULES, MAX_TEXT, OPENID, RoleRule
from domain.identity.role import Role
from domain.ids import OrganizationId
from domain.json_value import JsonObject
from interfaces.http.bodies import Body, Name, Patch
from interfaces.http.identity_providers.views import IdentityProviderView, RoleRuleView

_Text = Annotated[str, Field(max_length=MAX_TEXT)]
_Texts = Annotated[tuple[_Text, ...], Field(strict=False, max_length=MAX_AUDIENCES)]


class RoleRuleBody(Body):
    """People with this value in a claim get this role."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"claim": "groups", "value": "agents", "role": "operator"},)
    shown_as: ClassVar[type] = RoleRuleView

    claim: _Text
    value: _Text
    role: Role = Field(
        default=None,
        strict=False,
        validate_default=True,
        description="Role of these people. Required, unless there is a `custom_role`.",
    )
    organization_id: Name | None = None
    custom_role: Name | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_role(cls, given: object) -> object:
        if isinstance(given, dict) and given.get("custom_role") is not None:
            return {"role": Role.VIEWER, **given}
        return given

    @field_validator("role", mode="before")
    @classmethod
    def _required(cls, role: object) -> object:
        if role is None:
            raise PydanticKnownError("missing")
        return role

    def to_domain(self) -> RoleRule:
        organization_id = None if self.organization_id is None else OrganizationId(self.organization_id)
        return RoleRule(
            claim=self.claim,
            value=self.value,
            role=self.role,
            organization_id=organization_id,
            custom_role=self.custom_role,
        )


class IdentityProviderBody(Body):
    """An OpenID Connect issuer whose people may sign in. `client_secret` is write-only; without it
    the service is a public client."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {
            "name": "company",
            "issuer": "https://login.example.com",
            "client_id": "dragoman",
            "rules": [{"claim": "groups", "value": "agents", "role": "operator"}],
        },
    )
    shown_as: ClassVar[type] = IdentityProviderView

    name: Name
    issuer: _Text
    client_id: _Text
    client_secret: _Text | None = Field(
        default=None, repr=False, description="Secret of the client; write-only. Absent or null: a public client."
    )
    cli_client_id: _Text | None = None
    scopes: _Texts = (OPENID, "profile", "email")
    audiences: _Texts = ()
    rules: Annotated[tuple[RoleRuleBody, ...], Field(strict=False, max_length=MAX_RULES)] = ()
    installation: bool = False


class UpdateIdentityProviderBody(Patch, of=IdentityProviderBody):
    """Changes to an identity provider; absent fields stay. `rules` replace all earlier ones;
    `client_secret` null makes the service a public client. `issuer` cannot change."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"rules": [{"claim": "sub", "value": "*", "role": "viewer"}]},)
    nullable: ClassVar[frozenset[str]] = frozenset({"client_secret", "cli_client_id"})
