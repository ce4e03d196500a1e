"""Ownership of HOME."""

import os
from pathlib import Path

import pytest

from domain.errors import ServiceError
from infrastructure.runtime.home import Home


def test_a_home_has_one_owner_at_a_time(tmp_path: Path) -> None:
    with Home(tmp_path).owned():
        with pytest.raises(ServiceError) as refused, Home(tmp_path).owned():
            pass
        assert refused.value.code == "home_in_use"
    with Home(tmp_path).owned():
        pass


def test_a_database_elsewhere_has_one_owner_too(tmp_path: Path) -> None:
    database = tmp_path / "shared.db"
    with Home(tmp_path / "one", database_path=database).owned():
        with pytest.raises(ServiceError) as refused, Home(tmp_path / "other", database_path=database).owned():
            pass
        assert refused.value.code == "home_in_use"
    with Home(tmp_path / "other", database_path=database).owned():
        pass


def test_a_home_is_free_at_once_while_a_starting_process_has_a_copy_of_the_lock(tmp_path: Path) -> None:
    with Home(tmp_path).owned():
        copy = os.dup(_descriptor_of(tmp_path / "lock"))
    try:
        with Home(tmp_path).owned():
            pass
    finally:
        os.close(copy)


def _descriptor_of(path: Path) -> int:
    """The open descriptor of that file."""
    [found] = [entry for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink() and path.samefile(entry)]
    return int(found.name)
