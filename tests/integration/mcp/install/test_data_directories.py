"""Directories for the data of confined servers."""

from pathlib import Path

from infrastructure.mcp.install.directories import InstallDirectories
from tests.builders import ORG, SERVER, a_server


def test_a_service_that_starts_leaves_the_data_directories_of_servers_that_workers_run(tmp_path: Path) -> None:
    running = InstallDirectories(tmp_path).data(a_server())
    assert InstallDirectories(tmp_path).tidy() == ()
    assert (running / "tmp").is_dir()


def test_the_data_directory_goes_with_its_server(tmp_path: Path) -> None:
    directories = InstallDirectories(tmp_path)
    data = directories.data(a_server())
    directories.remove_all(ORG, SERVER)
    assert not data.exists()
