"""A server that changes its own installation does not open more by it at its next start; code that
is built reaches little of the operator's files."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from domain.mcp.server import McpServerKind
from infrastructure.confinement.grants import Grants
from infrastructure.confinement.sandbox import Sandbox, SandboxMode
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.server_confinement import ServerConfinement
from infrastructure.mcp.transports.launch import Launch
from tests.completeness import beyond
from tests.integration.confinement.world import PATIENCE_S, PROFILES, held_here, launched, machine_of
from tests.integration.mcp.parts import started

pytestmark = pytest.mark.requirement("S1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A HOME with keys, an installed server, and a runtime of another one."""

    root: Path
    profile: str

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def installation(self) -> Path:
        return self.home / "servers" / "org_a" / "srv_a" / "ins_a"

    @property
    def environment(self) -> Path:
        return self.installation / "venv"

    @property
    def other(self) -> Path:
        return self.home / "servers" / "org_b" / "srv_b" / "ins_b" / "venv"

    @property
    def outside(self) -> Path:
        """Files of the user, not hidden."""
        return self.root / "user" / "work"

    def confinement(self, *, writable: tuple[Path, ...] = ()) -> ServerConfinement:
        sandbox = Sandbox(
            mode=SandboxMode.AUTO,
            private=(self.home,),
            granted=Grants(writable=writable),
            ports=None,
            user_home=self.root / "user",
            probe=lambda: machine_of(self.profile),
        )
        return ServerConfinement(
            sandbox=sandbox,
            directories=InstallDirectories(self.home / "servers"),
            search_path=os.environ["PATH"],
            runtime=(Path(sys.prefix), Path(sys.base_prefix)),
        )

    def launch(self, command: Path) -> Launch:
        return Launch(command=str(command), args=(), place=self.installation, own=(self.environment,))

    def opened(self, options: tuple[str, ...], secret: Path) -> bool:
        """Whether a confined process reads the file."""
        with launched(options, "cat", str(secret), cwd=self.installation) as (process, _):
            out, _err = process.communicate(timeout=PATIENCE_S)
        return b"private" in out


@pytest.fixture(params=PROFILES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if not held_here(request.param):
        pytest.skip(beyond(f"this machine does not hold the profile {request.param}"))
    place = Place(root=tmp_path, profile=request.param)
    for directory in (place.environment, place.other, place.outside):
        (directory / "bin").mkdir(parents=True)
        (directory / "lib" / "python3.11").mkdir(parents=True)
        (directory / "lib" / "secret").write_text("private")
        program(directory / "bin" / "python", "#!/bin/sh\n")
    (place.home / "secret.key").write_text("private")
    program(place.environment / "bin" / "server", f"#!{place.environment}/bin/python\n")
    return place


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o700)


async def options(place: Place, command: Path, *, writable: tuple[Path, ...] = ()) -> tuple[str, ...]:
    server = started("server", kind=McpServerKind.CUSTOM, path="/nowhere", args=())
    return (await place.confinement(writable=writable).of_server(server, place.launch(command))).options


async def test_its_own_files_are_open(place: Place) -> None:
    found = await options(place, place.environment / "bin" / "server")
    assert place.opened(found, place.environment / "lib" / "secret")


async def test_a_link_among_the_parts_of_its_runtime_opens_nothing(place: Place) -> None:
    (place.environment / "libexec").symlink_to(place.home / "secret.key")
    (place.environment / "include").symlink_to(place.other)
    found = await options(place, place.environment / "bin" / "server")
    assert not place.opened(found, place.home / "secret.key")
    assert not place.opened(found, place.other / "lib" / "secret")


@pytest.mark.parametrize("target", ["other", "outside"])
async def test_a_retargeted_interpreter_opens_nothing(target: str, place: Place) -> None:
    runtime: Path = getattr(place, target)
    (place.environment / "bin" / "python").unlink()
    (place.environment / "bin" / "python").symlink_to(runtime / "bin" / "python")
    for command in ("server", "python"):
        found = await options(place, place.environment / "bin" / command)
        assert not place.opened(found, runtime / "lib" / "secret")


@pytest.mark.parametrize("target", ["other", "outside"])
async def test_a_rewritten_first_line_opens_nothing(target: str, place: Place) -> None:
    runtime: Path = getattr(place, target)
    program(place.environment / "bin" / "server", f"#!{runtime}/bin/python\n")
    found = await options(place, place.environment / "bin" / "server")
    assert not place.opened(found, runtime / "lib" / "secret")


async def test_a_command_in_what_all_servers_write_opens_nothing_by_its_links(place: Place) -> None:
    shared = place.root / "shared"
    (shared / "bin").mkdir(parents=True)
    (shared / "bin" / "tool").symlink_to(place.outside / "bin" / "python")
    found = await options(place, shared / "bin" / "tool", writable=(shared,))
    assert not place.opened(found, place.outside / "lib" / "secret")


async def test_a_command_in_another_servers_installation_opens_nothing(place: Place) -> None:
    command = str(place.other / "bin" / "python")
    server = started(command, str(place.other / "lib"))
    launch = Launch(command=command, args=(str(place.other / "lib"),))
    found = (await place.confinement().of_server(server, launch)).options
    assert not place.opened(found, place.other / "lib" / "secret")


async def test_build_code_opens_nothing_for_the_next_step_of_its_installation(place: Place) -> None:
    python = place.environment / "bin" / "python"
    python.unlink()
    python.symlink_to(place.outside / "bin" / "python")
    (place.installation / "wanted").symlink_to(place.outside / "lib" / "secret")
    command = (str(python), "wanted", f"--file={place.installation}/wanted")
    confinement = place.confinement()
    environment = {"PATH": os.environ["PATH"]}
    for runs_packages in (False, True):
        confined = await confinement.of_installer(place.installation, environment, command, runs_packages=runs_packages)
        assert not place.opened(confined.options, place.outside / "lib" / "secret")


async def test_an_installer_reads_its_configuration_and_code_of_packages_reads_none(place: Place) -> None:
    user, config = place.root / "user", place.root / "config"
    environment = {"PATH": os.environ["PATH"], "HOME": str(user), "XDG_CONFIG_HOME": str(config)}
    environment |= {"PIP_INDEX_URL": "https://me:password@index.example/simple", "UV_INDEX_X_PASSWORD": "password"}
    environment |= {"HTTPS_PROXY": "http://me:password@proxy.example", "http_proxy": "me:password@proxy.example"}
    for path in (user / ".npmrc", user / ".netrc", config / "pip" / "pip.conf", config / "other" / "secret"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("private")
    (config / "uv").mkdir()
    (config / "uv" / "uv.toml").write_text('index-url = "https://me:password@other.example/simple" # private')
    confinement = place.confinement()
    for_pip = (user / ".netrc", config / "pip" / "pip.conf", config / "uv" / "uv.toml")
    uv, npm = ("uv", "pip", "install"), ("npm", "install")
    reading = await confinement.of_installer(place.installation, environment, uv, runs_packages=False)
    of_npm = await confinement.of_installer(place.installation, environment, npm, runs_packages=False)
    running = await confinement.of_installer(place.installation, environment, uv, runs_packages=True)
    for found, opened in ((reading, for_pip), (of_npm, (user / ".npmrc",)), (running, ())):
        for path in (user / ".npmrc", *for_pip, config / "other" / "secret"):
            assert place.opened(found.options, path) is (path in opened)
    assert running.environment["HOME"] == str(place.installation)
    assert running.environment["UV_INDEX_URL"] == "https://other.example/simple"
    assert running.environment["PIP_INDEX_URL"] == "https://index.example/simple"
    assert (running.environment["HTTPS_PROXY"], running.environment["http_proxy"]) == (
        "http://proxy.example",
        "proxy.example",
    )
    assert running.without >= {"PIP_INDEX_URL", "UV_INDEX_X_PASSWORD"}
    assert "password" not in str(running)


@pytest.mark.parametrize("runs_packages", [False, True])
async def test_an_installer_writes_no_cache_of_others(runs_packages: bool, place: Place) -> None:
    cache = place.root / "cache"
    cache.mkdir()
    caches = dict.fromkeys(("XDG_CACHE_HOME", "UV_CACHE_DIR", "PIP_CACHE_DIR", "NPM_CONFIG_CACHE"), str(cache))
    environment = {"PATH": os.environ["PATH"], "HOME": str(place.root / "user"), **caches}
    own = place.home / "servers" / ".cache" / "org_a"
    for command in (("uv", "pip", "install"), ("npm", "install")):
        found = await place.confinement().of_installer(
            place.installation, environment, command, runs_packages=runs_packages
        )
        with launched(found.options, "touch", str(cache / "poison"), cwd=place.installation) as (process, _):
            process.communicate(timeout=PATIENCE_S)
        assert not (cache / "poison").exists()
        assert all(Path(found.environment[name]).is_relative_to(own) for name in caches)
