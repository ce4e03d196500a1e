"""Identity providers: which are valid, and whom their rules admit."""

from typing import Any

import pytest

from domain.errors import ServiceError
from domain.identity.identity_provider import ANY_VALUE, Admission, IdentityProvider, RoleRule
from domain.identity.role import Role
from domain.json_value import JsonObject
from tests.builders import ORG, OTHER_ORG
from tests.people_builders import AGENTS, a_provider

CLAIMS: JsonObject = {
    "sub": "ann",
    "email": "ann@example.com",
    "email_verified": True,
    "hd": "example.com",
    "groups": ["staff", "agents"],
    "https://acme.example/roles": ["lead"],
    "realm_access": {"roles": ["operator"]},
    "level": 3,
    "off": False,
}


def a_rule(claim: str, value: str = ANY_VALUE) -> RoleRule:
    return RoleRule(claim=claim, value=value, role=Role.VIEWER)


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(
    ("claim", "value", "matches"),
    [
        ("hd", "example.com", True),
        ("hd", "Example.com", False),
        ("groups", "agents", True),
        ("groups", "agent", False),
        ("https://acme.example/roles", "lead", True),
        ("realm_access.roles", "operator", True),
        ("realm_access.roles.operator", ANY_VALUE, False),
        ("level", "3", True),
        ("email_verified", "true", True),
        ("sub", ANY_VALUE, True),
        ("off", ANY_VALUE, False),
        ("missing", ANY_VALUE, False),
        ("missing", "None", False),
    ],
)
def test_a_rule_matches_a_claim_or_an_item_of_it(claim: str, value: str, matches: bool) -> None:
    assert a_rule(claim, value).matches(CLAIMS) is matches


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_an_address_that_the_provider_has_not_verified_matches_no_rule(verified: Any) -> None:
    rule = a_rule("email", "ann@example.com")
    assert rule.matches(CLAIMS)
    assert not rule.matches({**CLAIMS, "email_verified": verified})
    assert not rule.matches({"email": "ann@example.com"})


@pytest.mark.requirement("P1")
def test_the_first_matching_rule_decides_and_none_refuses() -> None:
    provider = a_provider(rules=(a_rule("groups", "nobody"), AGENTS, a_rule("sub")))
    assert provider.admission(CLAIMS) == Admission(organization_id=ORG, role=Role.OPERATOR)
    assert a_provider(rules=()).admission(CLAIMS) is None


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"name": "Company"}, "name"),
        ({"issuer": "http://login.example.com"}, "issuer"),
        ({"issuer": "https://login.example.com?x=1"}, "issuer"),
        ({"issuer": "https://me@login.example.com"}, "issuer"),
        ({"issuer": "https://login.example.com:x"}, "issuer"),
        ({"issuer": "ftp://login.example.com"}, "issuer"),
        ({"client_id": ""}, "client_id"),
        ({"client_secret": ""}, "client_secret"),
        ({"audiences": ("a",) * 21}, "audiences"),
        ({"rules": (a_rule("sub"),) * 201}, "rules"),
        ({"rules": (a_rule(""),)}, "rules.0"),
        (
            {"rules": (RoleRule(claim="sub", value="*", role=Role.ADMIN, organization_id=OTHER_ORG),)},
            "rules.0.organization_id",
        ),
    ],
)
def test_an_identity_provider_that_cannot_be_right_is_refused(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(ServiceError) as raised:
        a_provider(**changes)
    assert [violation.path for violation in raised.value.violations] == [path]


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("issuer", ["https://login.example.com/tenant/v2.0", "http://127.0.0.1:8080", "http://[::1]:1"])
def test_only_this_machine_needs_no_tls(issuer: str) -> None:
    assert a_provider(issuer=issuer).issuer == issuer


def test_the_scope_openid_is_required() -> None:
    provider = a_provider()
    names = ("id", "organization_id", "name", "issuer", "client_id", "created_at")
    values: dict[str, Any] = {name: getattr(provider, name) for name in names}
    with pytest.raises(ServiceError):
        IdentityProvider(**values, scopes=("email",))
