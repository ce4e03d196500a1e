"""The audit trail of a real data directory, and somebody who writes into its database file."""

import json
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from domain.json_value import JsonObject, JsonValue
from tests.e2e.dragoman_here import DragomanHere
from tests.e2e.dragoman_process import Dragoman
from tests.e2e.processes import until
from tests.e2e.service import serving

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a trail of at least four entries."""
    opened = DragomanHere(tmp_path_factory.mktemp("made") / "home")
    opened.run("key", "create", "one")
    opened.run("run", "hi", "--model", opened.script("hello", {"text": "Hello."}))
    return opened.home


@pytest.fixture
def dragoman(made: Path, tmp_path: Path) -> Dragoman:
    """A copy of it."""
    shutil.copytree(made, tmp_path / "home")
    return DragomanHere(tmp_path / "home")


def change(dragoman: Dragoman, *statements: str) -> None:
    """Behind the service's back."""
    with closing(sqlite3.connect(dragoman.home / "dragoman.db")) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0, statement


def rows(dragoman: Dragoman, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(dragoman.home / "dragoman.db")) as connection:
        return connection.execute(query).fetchall()


def event_id(dragoman: Dragoman, number: int) -> str:
    (found,) = rows(dragoman, f"SELECT event_id FROM audit_seal WHERE number = {number}")
    return str(found[0])


def verified(dragoman: Dragoman, *, exit_code: int = 1) -> JsonObject:
    return dragoman.run("audit", "verify", "--json", exit_code=exit_code).json


def broken(dragoman: Dragoman) -> JsonValue:
    return verified(dragoman)["first_broken"]


@pytest.mark.requirement("C5")
def test_every_entry_is_sealed_exported_in_order_and_verified(dragoman: Dragoman, tmp_path: Path) -> None:
    report = verified(dragoman, exit_code=0)
    assert report["unsealed"] == 0
    dragoman.run("audit", "export", "--output", str(tmp_path / "audit.ndjson"))
    lines = [json.loads(line) for line in (tmp_path / "audit.ndjson").read_text("utf-8").splitlines()]
    assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
    assert {"key.created", "run.started", "run.completed"} <= {line["action"] for line in lines}
    assert report["checked"] == len(lines)
    assert dragoman.run("audit", "export").out.splitlines() == (tmp_path / "audit.ndjson").read_text().splitlines()


TAMPERING: dict[str, tuple[Callable[[Dragoman], list[str]], int, str]] = {
    "an actor edited": (
        lambda dragoman: [f"UPDATE audit_event SET actor = 'key_x' WHERE id = '{event_id(dragoman, 2)}'"],
        2,
        "edited",
    ),
    "a time made unreadable": (
        lambda dragoman: [f"UPDATE audit_event SET at = 'never' WHERE id = '{event_id(dragoman, 2)}'"],
        2,
        "edited",
    ),
    "details spoiled": (
        lambda dragoman: [f"UPDATE audit_event SET details = '{{' WHERE id = '{event_id(dragoman, 2)}'"],
        2,
        "edited",
    ),
    "an entry deleted": (
        lambda dragoman: [f"DELETE FROM audit_event WHERE id = '{event_id(dragoman, 2)}'"],
        2,
        "deleted",
    ),
    "two entries swapped": (
        lambda dragoman: [
            "UPDATE audit_seal SET number = -1 WHERE number = 2",
            "UPDATE audit_seal SET number = 2 WHERE number = 4",
            "UPDATE audit_seal SET number = 4 WHERE number = -1",
        ],
        2,
        "reordered",
    ),
}


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("kind", list(TAMPERING))
def test_a_row_that_somebody_has_changed_in_the_file_is_named(dragoman: Dragoman, kind: str) -> None:
    make, number, problem = TAMPERING[kind]
    statements = make(dragoman)
    named = event_id(dragoman, number if problem != "reordered" else 4)
    change(dragoman, *statements)
    assert broken(dragoman) == {"number": number, "event_id": named, "problem": problem}
    assert f"number {number}" in dragoman.run("audit", "verify", exit_code=1).out


@pytest.mark.requirement("C5")
def test_a_tail_that_was_cut_off_is_missed_and_not_sealed_over(dragoman: Dragoman) -> None:
    last = verified(dragoman, exit_code=0)["sealed_through"]
    assert isinstance(last, int)
    change(
        dragoman,
        f"DELETE FROM audit_event WHERE id IN (SELECT event_id FROM audit_seal WHERE number >= {last - 1})",
        f"DELETE FROM audit_seal WHERE number >= {last - 1}",
    )
    dragoman.run("key", "create", "later")
    assert broken(dragoman) == {"number": last - 1, "event_id": None, "problem": "deleted"}


@pytest.mark.requirement("C5")
def test_a_head_turned_back_with_the_tail_is_found_and_not_gone_on_from(dragoman: Dragoman) -> None:
    change(
        dragoman,
        "DELETE FROM audit_event WHERE id IN (SELECT event_id FROM audit_seal WHERE number > 2)",
        "DELETE FROM audit_seal WHERE number > 2",
        "UPDATE audit_head SET number = 2, seal = (SELECT seal FROM audit_seal WHERE number = 2)",
    )
    assert broken(dragoman) == {"number": None, "event_id": None, "problem": "head_edited"}
    dragoman.run("key", "create", "later")
    assert rows(dragoman, "SELECT max(number) FROM audit_seal") == [(2,)]


@pytest.mark.requirement("C5")
def test_after_a_rotation_the_old_seals_are_still_verified(dragoman: Dragoman) -> None:
    dragoman.run("secret", "rotate")
    dragoman.run("key", "create", "after")
    report = verified(dragoman, exit_code=0)
    assert report["unknown_keys"] == []
    assert rows(dragoman, "SELECT count(DISTINCT key_id) FROM audit_seal") == [(2,)]


@pytest.mark.requirement("C5")
def test_without_the_secret_key_the_seals_are_called_unknown_and_not_broken(dragoman: Dragoman) -> None:
    (dragoman.home / "secret.key").write_text("another passphrase altogether\n")
    report = verified(dragoman)
    assert report["first_broken"] is None
    (unknown,) = rows(dragoman, "SELECT DISTINCT key_id FROM audit_seal WHERE number = 1")
    keys = report["unknown_keys"]
    assert isinstance(keys, list)
    assert [key["key_id"] for key in keys if isinstance(key, dict)] == [unknown[0]]


@pytest.mark.requirement("C5", "E7")
def test_entries_of_a_killed_service_are_sealed_by_the_next_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    dragoman = DragomanHere(home)
    with serving(home) as service:
        entries = "SELECT count(*) FROM audit_event"
        until(lambda: rows(dragoman, entries) == rows(dragoman, "SELECT count(*) FROM audit_seal"), what="the seals")
        service.stop(signal.SIGKILL)
    # As after a kill between an entry and its seal, long ago.
    number = "(SELECT max(number) FROM audit_seal)"
    (before,) = rows(dragoman, entries)
    change(
        dragoman,
        "INSERT INTO audit_event (id, organization_id, action, actor, resource, at, details)"
        " SELECT 'aud_left', id, 'key.created', 'key_1', 'key_2', 1, '{}' FROM organization",
    )
    report = verified(dragoman, exit_code=0)
    assert report["unsealed"] == 0
    assert rows(dragoman, f"SELECT {number}") == [(int(str(before[0])) + 1,)]
    assert report["sealed_late"] == 1
