"""Directories of installed servers: `ROOT/ORGANIZATION/SERVER/INSTALLATION`. An installation is
valid once its manifest exists, which is written last; the rest of the tree may be removed at
startup."""

import asyncio
import fcntl
import json
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath

from application.mcp.installer import InstalledServer, McpInstallFailure
from domain.ids import McpServerId, OrganizationId, UserId
from domain.mcp.given_secrets import AccountOwner, account_owner
from domain.mcp.server import McpServer
from infrastructure.mcp.install.package_files import read_json, write_file

_MANIFEST = "installed.json"
_LOG = "install.log"
_REMOVED = ".removed"
_DATA = ".data"
_DATA_OF_PEOPLE = ".people"
_CACHE = ".cache"
_BUILDING = ".building"
_IMAGES = "images"
_LOCK_PAUSE_S = 0.05
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_LOCATION_PARTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Content of an installation. `commands` are paths by name, with `preferred` as default.
    `lock` is the installer's own file of them, without local files; it is not in the stored
    manifest.
    `packages` are the exact versions of all packages, and `hashes` those of their archives, by the
    same names: npm's integrity (SRI), or each that the Python registry has of the version
    (`sha256:` and hex). `brought`: it was an installation that brought the image to the container
    engine."""

    version: str
    commands: dict[str, str] = field(default_factory=dict)
    preferred: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, list[str]] = field(default_factory=dict)
    lock: str | None = None
    brought: bool = False


class InstallDirectories:
    """The tree below `root`. All methods block on disk I/O."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def root(self) -> Path:
        return self._root

    def path(self, location: str) -> Path:
        """Raises ValueError for an invalid location."""
        parts = location.split("/")
        if len(parts) != _LOCATION_PARTS or not all(_NAME.fullmatch(part) for part in parts):
            raise ValueError("not a location of an installation")
        return self._root.joinpath(*parts)

    def create(self, location: str) -> Path:
        """Create an empty directory for a new installation."""
        path = self.path(location)
        for directory in (self._root, *reversed(path.relative_to(self._root).parents[:-1])):
            (self._root / directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
        return path

    @contextmanager
    def building(self, location: str) -> Iterator[bool]:
        """The right to build an installation at a known place, which processes of this machine may
        want at once. False if another one has it."""
        with self._locked(location.replace("/", ".")) as is_ours:
            yield is_ours

    @asynccontextmanager
    async def images(self) -> AsyncIterator[None]:
        """The right, of one among all processes of this machine, to begin installations and to
        remove images that no installation has."""
        while True:
            with self._locked(_IMAGES) as is_ours:
                if is_ours:
                    yield
                    return
            await asyncio.sleep(_LOCK_PAUSE_S)

    def finish(self, location: str, manifest: Manifest) -> None:
        """Write the manifest, which makes the installation valid."""
        path = self.path(location)
        shown = asdict(replace(manifest, lock=None))  # the lock is in the database only: servers read this file
        write_file(path, f"{_MANIFEST}.new", json.dumps(shown, indent=1), is_synced=True)
        (path / f"{_MANIFEST}.new").replace(path / _MANIFEST)

    def is_complete(self, location: str) -> bool:
        """Whether the installation is valid."""
        return (self.path(location) / _MANIFEST).is_file()

    def manifest(self, location: str) -> Manifest | None:
        """The manifest; None for an invalid installation."""
        try:
            manifest = read_json(self.path(location), _MANIFEST, Manifest)
        except (McpInstallFailure, ValueError):
            return None
        # Code of packages may have written it, until it is finished.
        is_inside = all(_is_inside(command) for command in manifest.commands.values())
        return manifest if is_inside else None

    def installed(self, below: str = "[!.]*/*/*") -> tuple[Manifest | None, ...]:
        """The manifests of the installations whose locations match a pattern; None for one that is
        not valid, such as one that is being made."""
        return tuple(
            self.manifest("/".join(path.parts[-_LOCATION_PARTS:])) for path in self._root.glob(below) if path.is_dir()
        )

    def remove(self, location: str) -> None:
        """Remove one installation: renamed at once, then deleted."""
        self._remove(self.path(location), location.replace("/", "."))

    def remove_all(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Remove all installations of a server, and its log."""
        self._remove(self._server(organization_id, server_id), f"{organization_id}.{server_id}")
        self._remove(self._data(organization_id, server_id), f"{organization_id}.{server_id}.data")
        of_people = self._root / _DATA_OF_PEOPLE / organization_id / server_id
        self._remove(of_people, f"{organization_id}.{server_id}.people")

    def data(self, server: McpServer) -> Path:
        """The directory for the data of a confined server, with one for temporary files in it:
        another one for each person that it acts for. It is removed when the server is uninstalled
        or deleted."""
        owner = account_owner(server)
        data = self._data(server.organization_id, server.tested_id or server.id) if owner is None else self._of(owner)
        (data / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
        return data

    def people(self) -> tuple[AccountOwner, ...]:
        """Whose directories there are."""
        found = (self._root / _DATA_OF_PEOPLE).glob("[!.]*/[!.]*/[!.]*/")
        parts = (path.parts[-_LOCATION_PARTS:] for path in found)
        return tuple(AccountOwner(OrganizationId(of), McpServerId(at), UserId(person)) for of, at, person in parts)

    def remove_data_of(self, owner: AccountOwner) -> None:
        """Remove the directory of a person."""
        self._remove(self._of(owner), ".".join(owner))

    def cache(self, target: Path) -> Path:
        """The directory for the caches of confined installers of an organization, that of the
        installation `target`."""
        cache = self._root / _CACHE / target.relative_to(self._root).parts[0]
        (cache / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
        return cache

    def log_path(self, organization_id: OrganizationId, server_id: McpServerId) -> Path:
        """The log of a server's newest installation."""
        return self._server(organization_id, server_id) / _LOG

    def tidy(self) -> tuple[InstalledServer, ...]:
        """Remove incomplete installations; returns the complete ones. Data directories stay:
        workers run their servers."""
        shutil.rmtree(self._root / _REMOVED, ignore_errors=True)
        found = []
        for path in self._root.glob("[!.]*/*/*/"):
            organization, server, name = path.parts[-_LOCATION_PARTS:]
            location = f"{organization}/{server}/{name}"
            if (path / _MANIFEST).is_file():
                found.append(
                    InstalledServer(
                        organization_id=OrganizationId(organization),
                        server_id=McpServerId(server),
                        location=location,
                    )
                )
                continue
            with self.building(location) as is_abandoned:
                if is_abandoned:
                    shutil.rmtree(path, ignore_errors=True)
        return tuple(found)

    @contextmanager
    def _locked(self, name: str) -> Iterator[bool]:
        path = self._root / _BUILDING / name
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _server(self, organization_id: OrganizationId, server_id: McpServerId) -> Path:
        return self.path(f"{organization_id}/{server_id}/x").parent

    def _data(self, organization_id: OrganizationId, server_id: McpServerId) -> Path:
        return self._root / _DATA / self._server(organization_id, server_id).relative_to(self._root)

    def _of(self, owner: AccountOwner) -> Path:
        # Not in the server's own directory, which a process of the organization writes.
        return self._root / _DATA_OF_PEOPLE / self.path("/".join(owner)).relative_to(self._root)

    def _remove(self, path: Path, name: str) -> None:
        if not path.exists():
            return
        # The name is new: another removal from the same place, at the same time, must not meet this
        # one.
        removed = self._root / _REMOVED / f"{name}.{secrets.token_hex(8)}"
        removed.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            path.rename(removed)
        except FileNotFoundError:
            return
        shutil.rmtree(removed, ignore_errors=True)


def _is_inside(command: str) -> bool:
    path = PurePosixPath(command)
    return not path.is_absolute() and ".." not in path.parts
