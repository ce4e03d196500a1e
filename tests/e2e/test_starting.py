"""What `dragoman serve` says when it starts, and when it cannot."""

import socket
import stat
from pathlib import Path

import pytest

from tests.e2e.processes import until
from tests.e2e.service import serve_to_its_end, starting


@pytest.mark.requirement("C6", "E6")
def test_a_first_start_makes_a_private_home_and_says_where_it_listens_and_where_the_key_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with starting(home, DRAGOMAN_MCP_SANDBOX="auto", DRAGOMAN_LOG_LEVEL="warning") as service:
        until(service.output.read_text, what="the announcement, which comes after serve.json")
        lines = service.output.read_text().splitlines()
        assert lines == [f"Dragoman is ready on {service.url}", f"API key: {home / 'admin.key'}"]
        assert service.log.read_text() == ""
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        for name in ("admin.key", "secret.key", "serve.json"):
            assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
        [key] = service.call("GET", "/api-keys")["data"]
        assert service.key not in str(key)
        for name in ("dragoman.db", "lock"):
            assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
    key_of_first_start = (home / "admin.key").read_text()
    with starting(home):
        assert (home / "admin.key").read_text() == key_of_first_start


def test_a_database_elsewhere_is_used_and_has_one_owner(tmp_path: Path) -> None:
    elsewhere = tmp_path / "data" / "mine.db"
    elsewhere.parent.mkdir()
    url = f"sqlite:///{elsewhere}"
    with starting(tmp_path / "home", DRAGOMAN_DATABASE_URL=url) as first:
        assert elsewhere.exists()
        assert not (tmp_path / "home" / "dragoman.db").exists()
        second = serve_to_its_end(tmp_path / "other", DRAGOMAN_DATABASE_URL=url)
        assert second.returncode != 0
        [line] = second.stderr.splitlines()
        assert f"pid {first.process.pid}" in line
        assert str(elsewhere) in line


@pytest.mark.requirement("E6")
def test_a_second_service_on_the_same_home_says_who_owns_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with starting(home) as first:
        second = serve_to_its_end(home)
        assert second.returncode != 0
        assert second.stdout == ""
        [line] = second.stderr.splitlines()
        assert f"pid {first.process.pid}" in line
        assert str(home) in line
        # The first one is as it was.
        assert first.call("GET", "/agents")["data"] == []
        assert (home / "serve.json").exists()


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = serve_to_its_end(tmp_path / "home", DRAGOMAN_PORT=str(port))
    assert ended.returncode != 0
    [line] = ended.stderr.splitlines()
    assert str(port) in line
    assert "DRAGOMAN_PORT" in line


SECRET_KEY = "DRAGOMAN_SECRET_KEY"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DRAGOMAN_PORT", "eighty"),
        ("DRAGOMAN_LOG_LEVEL", "loud"),
        ("DRAGOMAN_WORKER_CONCURRENCY", "0"),
        ("DRAGOMAN_SECRET_KEY", "short"),
        ("DRAGOMAN_DATABASE_URL", "oracle://somewhere"),
        ("DRAGOMAN_DATABASE_URL", "postgresql://dragoman@localhost/dragoman"),
        ("OPENAI_BASE_URL", "not a url"),
    ],
)
def test_a_wrong_setting_is_named_with_an_example_and_nothing_is_made(tmp_path: Path, name: str, value: str) -> None:
    home = tmp_path / "home"
    ended = serve_to_its_end(home, **{name: value})
    assert ended.returncode != 0
    assert (SECRET_KEY if "postgresql" in value else name) in ended.stderr
    assert "Example" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not home.exists()


def test_a_home_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = serve_to_its_end(tmp_path / "file" / "home")
    assert ended.returncode != 0
    [line] = ended.stderr.splitlines()
    assert "file" in line


def test_a_file_that_is_no_database_is_told_and_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "dragoman.db").write_bytes(b"This is no database. " * 500)
    ended = serve_to_its_end(home)
    assert ended.returncode != 0
    why, error = ended.stderr.splitlines()
    assert "file is not a database" in why
    assert error.startswith("Error: ")
    assert (home / "dragoman.db").read_bytes().startswith(b"This is no database.")
