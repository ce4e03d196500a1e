"""Stored sign-ins: private files, one per service."""

from pathlib import Path

import pytest

from interfaces.cli.failures import CommandFailure
from interfaces.cli.sign_in.stored import StoredSignIn, StoredSignIns

HERE = "https://dragoman.example.com"


def a_sign_in(**changes: str) -> StoredSignIn:
    fields = {"service": HERE, "issuer": "https://login.example.com", "client_id": "cli", "id_token": "a.b.c"}
    return StoredSignIn(**{**fields, **changes}, expires_at=1.0)


def test_a_sign_in_is_stored_for_its_service_in_files_for_the_owner_only(tmp_path: Path) -> None:
    (tmp_path / "sign-ins").mkdir(mode=0o755)
    stored = StoredSignIns(tmp_path)
    stored.store(a_sign_in())
    stored.store(a_sign_in(service="https://other.example.com", id_token="d.e.f"))
    assert StoredSignIns(tmp_path).of(f"{HERE}/") == a_sign_in()
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.glob("sign-ins/*")}
    assert (modes, (tmp_path / "sign-ins").stat().st_mode & 0o777) == ({0o600}, 0o700)

    stored.forget(HERE)
    stored.forget(HERE)
    assert stored.of(HERE) is None
    assert stored.of("https://other.example.com") is not None


def test_what_is_no_stored_sign_in_is_refused(tmp_path: Path) -> None:
    stored = StoredSignIns(tmp_path)
    stored.store(a_sign_in())
    [file] = tmp_path.glob("sign-ins/*.json")
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(CommandFailure, match="is damaged"):
        stored.of(HERE)


async def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    stored = StoredSignIns(tmp_path / "file")
    with pytest.raises(CommandFailure, match="cannot be written"):
        stored.store(a_sign_in())
    with pytest.raises(CommandFailure, match="cannot be locked"):
        async with stored.locked(HERE):
            raise AssertionError("the lock was given")
