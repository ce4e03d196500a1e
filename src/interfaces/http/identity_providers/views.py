"""Identity providers as JSON, without their secrets."""

from typing import Annotated, TypedDict

from application.identity.check_identity_provider import IdentityProviderCheck
from domain.identity.identity_provider import IdentityProvider, RoleRule
from domain.identity.role import Role
from domain.threads.message_json import timestamp
from interfaces.http.view_fields import CreatedAt, Items, Version


class RoleRuleView(TypedDict):
    """A rule: people with this value in a claim get this role."""

    claim: Annotated[str, "Name of the claim, or a path with dots. `email` matches only verified addresses."]
    value: Annotated[str, "The claim, or an item of it, equals this value; `*` matches any."]
    role: Annotated[Role, "Role of these people."]
    organization_id: Annotated[
        str | None, "Organization of these people; null: that of the identity provider. Only with `installation`."
    ]
    custom_role: Annotated[str | None, "The custom role in place of `role`, which is `viewer` then; null: none."]


class IdentityProviderView(TypedDict):
    """An identity provider."""

    id: Annotated[str, "Id of the identity provider."]
    name: Annotated[str, "Name of the identity provider; the sign-in page shows it."]
    issuer: Annotated[str, "Issuer URL (OpenID Connect). Its metadata is below `/.well-known/openid-configuration`."]
    client_id: Annotated[str, "Id of the client that is registered for this service."]
    client_secret: Annotated[str | None, "`[hidden]`; null: a public client, protected by PKCE."]
    cli_client_id: Annotated[
        str | None, "Id of the public client with which people sign in to the command line; null: they do not."
    ]
    scopes: Annotated[list[str], "Scopes that a sign-in requests."]
    audiences: Annotated[list[str], "Audiences of bearer tokens that the API accepts, besides `client_id`."]
    rules: Annotated[list[RoleRuleView], "The first rule that matches decides; a person without one is refused."]
    installation: Annotated[
        bool, "Whether every sign-in page offers it, and rules may name other organizations. Requires a platform key."
    ]
    version: Version
    created_at: CreatedAt


class IdentityProviderList(TypedDict):
    """All identity providers of the organization."""

    data: Items[IdentityProviderView]


class IdentityProviderTestView(TypedDict):
    """The outcome of a test."""

    ok: Annotated[bool, "Whether people can sign in."]
    detail: Annotated[str, "The outcome in a sentence."]
    keys: Annotated[int, "Number of keys that the identity provider publishes."]
    signs_out: Annotated[bool, "Whether signing out here also signs out there."]
    has_device_flow: Annotated[bool, "Whether it has the device authorization grant (RFC 8628)."]


class ScimTokenView(TypedDict):
    """A new SCIM token."""

    token: Annotated[str, "The token: `dgs_…`. It is shown only once, and replaces the one before."]
    path: Annotated[str, "Path of SCIM, below the service's address."]


def identity_provider_view(provider: IdentityProvider) -> IdentityProviderView:
    return {
        "id": provider.id,
        "name": provider.name,
        "issuer": provider.issuer,
        "client_id": provider.client_id,
        "client_secret": None if provider.client_secret is None else "[hidden]",
        "cli_client_id": provider.cli_client_id,
        "scopes": list(provider.scopes),
        "audiences": list(provider.audiences),
        "rules": [_rule_view(rule) for rule in provider.rules],
        "installation": provider.installation,
        "version": provider.version,
        "created_at": timestamp(provider.created_at),
    }


def identity_provider_test_view(check: IdentityProviderCheck) -> IdentityProviderTestView:
    return {
        "ok": check.ok,
        "detail": check.detail,
        "keys": check.keys,
        "signs_out": check.signs_out,
        "has_device_flow": check.has_device_flow,
    }


def _rule_view(rule: RoleRule) -> RoleRuleView:
    return {
        "claim": rule.claim,
        "value": rule.value,
        "role": rule.role,
        "organization_id": rule.organization_id,
        "custom_role": rule.custom_role,
    }
