"""Which command lines are those of a service or worker, so that no other program is drained."""

import pytest

from interfaces.cli.commands.drain import starts_service_or_worker

pytestmark = pytest.mark.requirement("K7")


def as_stored(*words: str) -> bytes:
    return b"".join(word.encode() + b"\0" for word in words)


@pytest.mark.parametrize(
    "words",
    [
        ("/venv/bin/python", "/venv/bin/dragoman", "serve"),
        ("/venv/bin/python3", "/venv/bin/dragoman", "worker"),
        ("/usr/bin/pypy3", "/venv/bin/dragoman", "serve", "--port", "9000"),
        ("python", "-m", "dragoman", "worker"),
        ("python", "-m", "interfaces.cli", "serve", "--no-worker"),
        ("python", "-Im", "dragoman", "serve"),
        ("python", "-mdragoman", "serve"),
        ("/usr/bin/python3.12-dbg", "-Xcpu_count=2", "-Wmodule", "/usr/bin/dragoman", "worker"),
        ("python", "-X", "dev", "-Wignore", "-u", "-m", "dragoman", "serve"),
        ("python", "src/dragoman/__main__.py", "serve"),
    ],
)
def test_services_and_workers_are_known_however_they_are_started(words: tuple[str, ...]) -> None:
    assert starts_service_or_worker(as_stored(*words))


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("python", "-c", "print()"),
        ("python", "-c", "dragoman", "serve"),
        ("python", "-m", "http.server", "serve"),
        ("python", "-m", "dragoman.other", "serve"),
        ("/venv/bin/python", "/venv/bin/dragoman", "chat", "serve"),
        ("/venv/bin/python", "/venv/bin/dragoman", "server"),
        ("/venv/bin/python", "/venv/bin/dragoman"),
        ("/venv/bin/python", "/venv/bin/other-dragoman", "serve"),
        ("tail", "-f", "dragoman"),
        ("gunicorn", "worker"),
        ("sudo", "dragoman", "serve"),
        ("less", "dragoman", "serve"),
        ("/python/less", "dragoman", "serve"),
        ("python", "-mhttp.server", "dragoman", "serve"),
        ("python", "-cprint()", "dragoman", "serve"),
        ("python", "-cm", "dragoman", "serve"),
    ],
)
def test_other_command_lines_are_not(words: tuple[str, ...]) -> None:
    assert not starts_service_or_worker(as_stored(*words))
