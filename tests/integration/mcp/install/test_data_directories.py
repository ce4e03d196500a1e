"""Directories for the data of confined servers."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from domain.ids import UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.person_files import LocalPersonFiles
from tests.builders import ORG, SERVER, START, a_server
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.state import InMemoryState
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


def files_in(directories: InstallDirectories, *given: AccountOwner) -> LocalPersonFiles:
    person_secrets = InMemoryPersonSecretStore(InMemoryState())
    person_secrets.given = dict.fromkeys(
        given, GivenSecrets(binding="b", revision="r", given_at=START, values={"token": "s"})
    )
    return LocalPersonFiles(directories=directories, person_secrets=person_secrets)


@pytest.mark.requirement("P3")
async def test_a_service_that_starts_removes_files_of_people_who_were_removed(tmp_path: Path) -> None:
    directories = InstallDirectories(tmp_path)
    await files_in(directories).tidy()
    removed, kept = (directories.data(replace(a_server(), person_id=UserId(person))) for person in ("usr_gone", USER))
    of_organization = directories.data(a_server())
    await files_in(directories, AccountOwner(ORG, SERVER, USER)).tidy()
    assert (removed.exists(), (kept / "tmp").is_dir(), of_organization.is_dir()) == (False, True, True)


@pytest.mark.requirement("P3")
async def test_files_of_a_person_go_beside_another_removal_of_theirs_and_whatever_the_server_is_by_now(
    tmp_path: Path,
) -> None:
    directories = InstallDirectories(tmp_path / "servers")
    files, of_person = files_in(directories), replace(a_server(), person_id=USER)
    await files.remove(of_person)
    assert not directories.root.exists()
    data = directories.data(of_person)
    under_way = directories.root / ".removed" / f"{ORG}.{SERVER}.{USER}"
    under_way.mkdir(parents=True)
    await asyncio.gather(files.remove(of_person), files.remove(of_person))
    assert (data.exists(), under_way.is_dir()) == (False, True)
