"""`dragoman archive verify` and `dragoman audit verify --archive`: what they need, and what they
say of a directory without files."""

from pathlib import Path

import pytest

from tests.e2e.dragoman_here import DragomanHere

pytestmark = pytest.mark.requirement("K5")

CHECKS = [("archive", "verify"), ("audit", "verify", "--archive")]


@pytest.mark.parametrize("check", CHECKS, ids=" ".join)
@pytest.mark.parametrize("database", [True, False], ids=["a database", "an empty home"])
def test_a_check_makes_no_secret_key_and_says_that_it_is_missing(
    tmp_path: Path, check: tuple[str, ...], *, database: bool
) -> None:
    home, archive = tmp_path / "home", tmp_path / "archive"
    home.mkdir()
    archive.mkdir()
    if database:
        (home / "dragoman.db").touch()
    failed = DragomanHere(home).run(*check, str(archive), exit_code=1)
    assert f"{home / 'secret.key'} is missing" in failed.err
    assert [path.name for path in home.iterdir()] == (["dragoman.db"] if database else [])


@pytest.mark.parametrize("check", CHECKS, ids=" ".join)
def test_a_directory_without_files_fails(tmp_path: Path, check: tuple[str, ...]) -> None:
    here = DragomanHere(tmp_path / "home")
    key = {"DRAGOMAN_SECRET_KEY": "0123456789-0123456789-0123456789-01"}
    archive = tmp_path / "archive"
    (archive / "other").mkdir(parents=True)
    assert "There is no file" in here.run(*check, str(archive), exit_code=1, **key).out
    assert here.run(*check, str(archive), "--json", exit_code=1, **key).json["ok"] is False
