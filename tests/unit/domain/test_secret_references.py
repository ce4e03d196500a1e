"""References to secrets that are stored elsewhere: their forms, and that none leads out of its
organization's place."""

import pytest

from domain.errors import ServiceError
from domain.secrets.secret import (
    FileReference,
    SecretRef,
    VaultReference,
    external_reference,
    is_legal_reference,
    require_storable,
    violations_of,
)

pytestmark = pytest.mark.requirement("K8")


def test_a_reference_names_a_key_in_vault_or_a_file() -> None:
    assert external_reference("vault:github#token") == VaultReference("github", "token")
    assert external_reference("vault:team/ci.v2#API_KEY") == VaultReference("team/ci.v2", "API_KEY")
    assert external_reference("file:github_token") == FileReference("github_token")
    assert external_reference("file:mail/token") == FileReference("mail/token")
    assert external_reference("GITHUB_TOKEN") is None


@pytest.mark.parametrize(
    "name",
    [
        "vault:../other/github#token",
        "vault:a/../../other#token",
        "vault:/github#token",
        "vault:a//b#token",
        "vault:github",
        "vault:github#",
        "vault:#token",
        "vault:a?b#token",
        "vault:a%2f..#token",
        "file:../token",
        "file:/etc/passwd",
        "file:a/./b",
        "file:.hidden",
        "file:",
        "file:a\\b",
        "file:a\n",
        "env:TOKEN",
        "vault:" + "a/" * 16 + "a#b",
    ],
)
def test_no_reference_leads_upwards_or_has_another_form(name: str) -> None:
    assert external_reference(name) is None
    assert not is_legal_reference(name)
    assert [wrong.path for wrong in violations_of("env.TOKEN", SecretRef(name))] == ["env.TOKEN.secret"]


def test_a_secret_is_not_stored_under_the_name_of_one_elsewhere() -> None:
    with pytest.raises(ServiceError):
        require_storable("vault:github#token", "value")
