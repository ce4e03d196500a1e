"""Secrets in mounted files, and the store that answers for all references."""

import os
from pathlib import Path

import pytest

from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId
from domain.secrets.secret import Secret, VaultReference
from infrastructure.secrets.external_secrets import ExternalSecrets, SecretUnreadableError
from infrastructure.secrets.file_secrets import FileSecrets
from infrastructure.secrets.sourced_secrets import SourcedSecrets
from tests.builders import ORG, OTHER_ORG, START, an_audit_event
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState

pytestmark = pytest.mark.requirement("K8")


class SealedVault:
    def __init__(self) -> None:
        self.forgotten: list[OrganizationId] = []
        self.is_closed = False

    async def value(self, organization_id: OrganizationId, reference: VaultReference) -> str | None:
        raise SecretUnreadableError("Vault answered with HTTP status 503")

    def forget(self, organization_id: OrganizationId) -> None:
        self.forgotten.append(organization_id)

    async def close(self) -> None:
        self.is_closed = True


def mounted(root: Path, name: str, value: bytes = b"value", organization_id: str = ORG) -> Path:
    path = root / organization_id / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value)
    return path


def over(root: Path | None = None, vault: SealedVault | None = None) -> SourcedSecrets:
    files = None if root is None else FileSecrets(root)
    external = ExternalSecrets(vault=vault, files=files)
    return SourcedSecrets(InMemorySecretStore(InMemoryState()), external_secrets=external)


async def refusal(secrets: SourcedSecrets, name: str) -> str:
    with pytest.raises(ServiceError) as refused:
        await secrets.value(ORG, name)
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    assert refused.value.code == "secret_unavailable"
    assert repr(name) in refused.value.detail
    return refused.value.detail


async def test_a_file_is_read_at_each_use_without_its_last_line_end(tmp_path: Path) -> None:
    secrets = over(tmp_path)
    mounted(tmp_path, "token", b"first\n")
    assert await secrets.value(ORG, "file:token") == "first"

    mounted(tmp_path, "token", b"two\nlines\r\n")
    assert await secrets.value(ORG, "file:token") == "two\nlines"


async def test_an_organization_has_its_own_files_only(tmp_path: Path) -> None:
    mounted(tmp_path, "token", organization_id=OTHER_ORG)
    (tmp_path / "shared").write_text("value", encoding="utf-8")

    assert await over(tmp_path).value(ORG, "file:token") is None
    assert await over(tmp_path).value(ORG, "file:shared") is None
    assert await over(tmp_path).value(OTHER_ORG, "file:token") == "value"


@pytest.mark.parametrize("target", [OTHER_ORG, "."])
async def test_a_link_to_files_of_others_is_not_followed(target: str, tmp_path: Path) -> None:
    root = tmp_path / "secrets"
    mounted(root, "token", b"planted-value", organization_id=OTHER_ORG)
    (root / "token").write_text("planted-value", encoding="utf-8")
    (root / ORG).mkdir()
    (root / ORG / "token").symlink_to(root / target / "token")
    (root / ORG / "others").symlink_to(root / target)

    for name in ("file:token", "file:others/token"):
        assert "planted-value" not in await refusal(over(root), name)


async def test_a_directory_of_an_organization_outside_of_all_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "secrets"
    root.mkdir()
    mounted(tmp_path, "token", organization_id="elsewhere")
    (root / ORG).symlink_to(tmp_path / "elsewhere")

    assert "outside" in await refusal(over(root), "file:token")


async def test_links_are_followed_within_the_directory_as_kubernetes_makes_them(tmp_path: Path) -> None:
    root = tmp_path / "secrets"
    mounted(root / "..data", "token", b"old")
    (root / ORG).symlink_to(Path("..data") / ORG)

    assert await over(root).value(ORG, "file:token") == "old"


async def test_a_link_that_leads_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "secrets"
    (tmp_path / "outside").write_text("planted-outside", encoding="utf-8")
    (root / ORG).mkdir(parents=True)
    (root / ORG / "token").symlink_to(tmp_path / "outside")

    detail = await refusal(over(root), "file:token")

    assert "outside the organization's directory" in detail
    assert "planted-outside" not in detail


async def test_what_is_no_readable_text_file_is_refused(tmp_path: Path) -> None:
    secrets = over(tmp_path)
    mounted(tmp_path, "large", b"x" * (64 * 1024 + 1))
    mounted(tmp_path, "bytes", b"\xff\xfe")
    mounted(tmp_path, "nul", b"a\0b")
    os.mkfifo(tmp_path / ORG / "pipe")
    (tmp_path / ORG / "loop").symlink_to("loop")

    assert "larger" in await refusal(secrets, "file:large")
    assert "not text" in await refusal(secrets, "file:bytes")
    assert "not text" in await refusal(secrets, "file:nul")
    assert "not a file" in await refusal(secrets, "file:pipe")
    assert "cannot be read" in await refusal(secrets, "file:loop")
    assert await secrets.value(ORG, "file:absent") is None


async def test_a_source_that_is_not_set_up_or_does_not_answer_is_named_with_the_reference() -> None:
    assert "DRAGOMAN_SECRET_FILES" in await refusal(over(), "file:token")
    assert "DRAGOMAN_VAULT_URL" in await refusal(over(), "vault:github#token")
    assert "503" in await refusal(over(vault=SealedVault()), "vault:github#token")


async def test_stored_secrets_are_read_listed_and_removed_beside_them(tmp_path: Path) -> None:
    secrets = over(tmp_path)
    mounted(tmp_path, "token")
    stored = Secret(organization_id=ORG, name="TOKEN", created_at=START, updated_at=START)
    await secrets.put(stored, "stored", an_audit_event())

    assert await secrets.value(ORG, "TOKEN") == "stored"
    assert await secrets.get(ORG, "TOKEN") == stored
    assert await secrets.users(ORG, "TOKEN") == ()
    found = await secrets.get(ORG, "file:token")
    assert found is not None
    assert found.name == "file:token"
    assert await secrets.get(ORG, "file:absent") is None
    assert await secrets.delete(ORG, "TOKEN", an_audit_event(2))
    assert await secrets.get(ORG, "TOKEN") is None


async def test_refused_values_are_forgotten_and_the_vault_is_closed() -> None:
    vault = SealedVault()
    external = ExternalSecrets(vault=vault, files=None)

    external.forget(ORG)
    await external.close()

    assert vault.forgotten == [ORG]
    assert vault.is_closed
