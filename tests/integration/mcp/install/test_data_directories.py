"""Directories for the data of confined servers."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.person_files import LocalPersonFiles
from tests.builders import ORG, SERVER, a_server
from tests.people_builders import USER


def test_a_service_that_starts_leaves_the_data_directories_of_servers_that_workers_run(tmp_path: Path) -> None:
    running = InstallDirectories(tmp_path).data(a_server())
    assert InstallDirectories(tmp_path).tidy() == ()
    assert (running / "tmp").is_dir()


def test_the_data_directory_goes_with_its_server(tmp_path: Path) -> None:
    directories = InstallDirectories(tmp_path)
    data = directories.data(a_server())
    directories.remove_all(ORG, SERVER)
    assert not data.exists()


@pytest.mark.requirement("P3")
async def test_files_of_a_person_go_beside_another_removal_of_theirs_and_whatever_the_server_is_by_now(
    tmp_path: Path,
) -> None:
    directories = InstallDirectories(tmp_path / "servers")
    files, of_person = LocalPersonFiles(directories=directories), replace(a_server(), person_id=USER)
    await files.remove(of_person)
    assert not directories.root.exists()
    data = directories.data(of_person)
    under_way = directories.root / ".removed" / f"{ORG}.{SERVER}.{USER}"
    under_way.mkdir(parents=True)
    await asyncio.gather(files.remove(of_person), files.remove(of_person))
    assert (data.exists(), under_way.is_dir()) == (False, True)
