"""Identity providers: OpenID Connect issuers, and the rules that give their people an organization
and a role."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from domain.errors import Violation, invalid
from domain.identity.role import Role
from domain.ids import IdentityProviderId, OrganizationId
from domain.json_value import JsonValue

MAX_IDENTITY_PROVIDERS = 20
"""Per organization."""
MAX_RULES = 200
MAX_AUDIENCES = 20
MAX_TEXT = 2_048
ANY_VALUE = "*"
OPENID = "openid"

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")
_ISSUER = re.compile(r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:/[^?#\s]*)?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Where TLS is not required."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRule:
    """Gives a role to people with this value in a claim.

    - `claim` is a claim's name, or a path with dots to a claim inside others. A list has each of
      its items.
    - `value` `*` matches every value that is neither empty nor false.
    - The claim `email` matches only if the provider says that the address is verified.
    - `organization_id` None is the organization of the identity provider. Only a provider of the
      installation names others.
    - `custom_role` names a role of that organization in place of `role`, which is `viewer` then.
    """

    claim: str
    value: str
    role: Role
    organization_id: OrganizationId | None = None
    custom_role: str | None = None

    def matches(self, claims: Mapping[str, JsonValue]) -> bool:
        return claim_has(claims, self.claim, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Where a person is admitted, and as what."""

    organization_id: OrganizationId
    role: Role
    custom_role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    """An issuer and this service's registration there.

    - Without `client_secret` the service is a public client, protected by PKCE.
    - `cli_client_id` is the public client of the command line; without it people do not sign in
      there.
    - Tokens are accepted for `client_id`, `cli_client_id` and `audiences`.
    - The first rule that matches decides. A person without a matching rule is refused.
    - With `installation` the sign-in page always offers it, and rules may name any organization.
    """

    id: IdentityProviderId
    organization_id: OrganizationId
    name: str
    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    cli_client_id: str | None = None
    scopes: tuple[str, ...] = (OPENID, "profile", "email")
    audiences: tuple[str, ...] = ()
    rules: tuple[RoleRule, ...] = ()
    installation: bool = False
    version: int = 1
    created_at: datetime

    def __post_init__(self) -> None:
        wrong = [*_violations(self)]
        if wrong:
            raise invalid("identity_provider_invalid", "The identity provider is not valid.", *wrong)

    @property
    def accepted_audiences(self) -> tuple[str, ...]:
        own = (self.client_id,) if self.cli_client_id is None else (self.client_id, self.cli_client_id)
        return (*own, *self.audiences)

    def admission(self, claims: Mapping[str, JsonValue]) -> Admission | None:
        """The organization and role by the first matching rule; None refuses the person."""
        for rule in self.rules:
            if rule.matches(claims):
                organization_id = rule.organization_id or self.organization_id
                return Admission(organization_id=organization_id, role=rule.role, custom_role=rule.custom_role)
        return None


def claim_has(claims: Mapping[str, JsonValue], claim: str, value: str) -> bool:
    """Whether the claim has the value, as `RoleRule` says."""
    if claim == "email" and claims.get("email_verified") is not True:
        return False
    found = _claim(claims, claim)
    values = found if isinstance(found, list) else [found]
    texts = [_text(each) for each in values if each not in (None, "", False, {}, [])]
    return bool(texts) if value == ANY_VALUE else value in texts


def _violations(provider: IdentityProvider) -> list[Violation]:
    wrong = []
    if not _NAME.fullmatch(provider.name):
        wrong.append(Violation(path="name", message="must match [a-z0-9][a-z0-9_-]{0,63}"))
    if (fault := _fault_of_issuer(provider.issuer)) is not None:
        wrong.append(Violation(path="issuer", message=fault))
    if not _is_text(provider.client_id):
        wrong.append(Violation(path="client_id", message=f"must be 1 to {MAX_TEXT} printable characters"))
    if provider.client_secret is not None and not _is_text(provider.client_secret):
        wrong.append(Violation(path="client_secret", message=f"must be 1 to {MAX_TEXT} printable characters"))
    if provider.cli_client_id is not None and not _is_text(provider.cli_client_id):
        wrong.append(Violation(path="cli_client_id", message=f"must be 1 to {MAX_TEXT} printable characters"))
    if OPENID not in provider.scopes or not all(map(_SCOPE.fullmatch, provider.scopes)):
        wrong.append(Violation(path="scopes", message=f"must be names of scopes, with {OPENID} among them"))
    if len(provider.audiences) > MAX_AUDIENCES or not all(map(_is_text, provider.audiences)):
        wrong.append(Violation(path="audiences", message=f"must be at most {MAX_AUDIENCES} texts"))
    if len(provider.rules) > MAX_RULES:
        wrong.append(Violation(path="rules", message=f"has more than {MAX_RULES} rules"))
    return [*wrong, *_violations_of_rules(provider)]


def _violations_of_rules(provider: IdentityProvider) -> list[Violation]:
    wrong = []
    for index, rule in enumerate(provider.rules[:MAX_RULES]):
        if not _is_text(rule.claim) or not _is_text(rule.value):
            wrong.append(Violation(path=f"rules.{index}", message="must name a claim and a value"))
        if rule.organization_id not in (None, provider.organization_id) and not provider.installation:
            message = "is only for identity providers of the installation"
            wrong.append(Violation(path=f"rules.{index}.organization_id", message=message))
    return wrong


def _fault_of_issuer(issuer: str) -> str | None:
    found = _ISSUER.fullmatch(issuer) if _is_text(issuer) else None
    if found is None:
        return "must be the URL of the issuer, without credentials, query and fragment"
    if found["scheme"] != "https" and found["host"] not in _LOOPBACK:
        return "must begin with https://"
    return None


def _is_text(text: str) -> bool:
    return 0 < len(text) <= MAX_TEXT and text.isprintable() and text == text.strip()


def _claim(claims: Mapping[str, JsonValue], path: str) -> JsonValue:
    """A claim whose name has dots is found before a path."""
    if path in claims:
        return claims[path]
    value: JsonValue = dict(claims)
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: JsonValue) -> str:
    return "true" if value is True else str(value)
