"""Files in the directory of an installation: nothing is followed, nothing blocks, and sizes are
bounded."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from infrastructure.mcp.install.package_files import MAX_BYTES, read_file, read_json, write_file

pytestmark = pytest.mark.requirement("S1")


class Shape(msgspec.Struct):
    name: str


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "secret").write_text("secret")
    return place


def test_a_file_is_read_and_replaced(place: Path) -> None:
    write_file(place, "file", '{"name": "one", "more": 1}', is_synced=True)
    assert read_json(place, "file", Shape) == Shape(name="one")
    write_file(place, "file", "two")
    assert read_file(place, "file") == b"two"
    (place / "inner").mkdir()
    (place / "inner" / "file").write_text("three")
    assert read_file(place, "inner/file") == b"three"


def a_link(place: Path) -> None:
    (place / "file").symlink_to(place.parent / "secret")


def a_hard_link(place: Path) -> None:
    (place / "file").hardlink_to(place.parent / "secret")


def a_pipe(place: Path) -> None:
    os.mkfifo(place / "file")


def a_directory(place: Path) -> None:
    (place / "file").mkdir()


def a_large_file(place: Path) -> None:
    (place / "file").touch()
    os.truncate(place / "file", MAX_BYTES + 1)


def a_device(place: Path) -> None:
    (place / "file").symlink_to("/dev/zero")


def nothing(place: Path) -> None:
    """There is no file."""


@pytest.mark.parametrize("make", [a_link, a_hard_link, a_pipe, a_directory, a_large_file, a_device, nothing])
def test_what_is_no_file_of_the_installation_is_not_read(make: Callable[[Path], None], place: Path) -> None:
    make(place)
    with pytest.raises(McpInstallFailure) as failed:
        read_file(place, "file")
    assert failed.value.kind is McpInstallFailureKind.FAILED


@pytest.mark.parametrize("name", ["../secret", "linked/secret", "inner/../../secret", "/etc/passwd", "a\0b"])
def test_no_way_leads_out_of_the_installation(name: str, place: Path) -> None:
    (place / "inner").mkdir()
    (place / "linked").symlink_to(place.parent)
    with pytest.raises(McpInstallFailure):
        read_file(place, name)


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"name": 1}', "\ud800", "{}"])
def test_other_json_is_a_failure_of_the_installation(text: str, place: Path) -> None:
    (place / "file").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(McpInstallFailure) as failed:
        read_json(place, "file", Shape)
    assert failed.value.kind is McpInstallFailureKind.FAILED


@pytest.mark.parametrize("make", [a_link, a_hard_link, a_pipe, a_device])
def test_writing_replaces_what_is_there_and_changes_nothing_else(make: Callable[[Path], None], place: Path) -> None:
    make(place)
    write_file(place, "file", "ours")
    assert read_file(place, "file") == b"ours"
    assert (place.parent / "secret").read_text() == "secret"
