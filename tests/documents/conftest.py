"""What README's first steps made, once for all pages that a process runs."""

import shutil
from pathlib import Path

import pytest

from tests.documents.shell import first_steps


@pytest.fixture(scope="session")
def first_steps_done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("first_steps")
    first_steps(directory)
    return directory


@pytest.fixture
def readers_directory(first_steps_done: Path, tmp_path: Path) -> Path:
    """A directory in which README's first steps were done: a copy of one's own."""
    directory = tmp_path / "dragoman"
    shutil.copytree(first_steps_done, directory, symlinks=True)
    return directory
