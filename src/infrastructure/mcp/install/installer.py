"""The `McpInstaller` port on this machine: installs by kind into the data directory, completely or
not at all."""

import asyncio
import logging
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from application.mcp.installer import InstalledServer, InstallProgressCallback, McpInstallFailure, McpInstallFailureKind
from application.system.ports import Clock, IdSource
from domain.errors import ServiceError
from domain.ids import McpServerId, OrganizationId
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from infrastructure.mcp.install.copying import CopyLimits, TreeCopy, check_source, single_executable
from infrastructure.mcp.install.directories import InstallDirectories, Manifest
from infrastructure.mcp.install.job import ConfineInstaller, InstallJob, InstallLog, disk_failure
from infrastructure.mcp.install.launches import CONTENT, InstalledLaunches, NoSuchCommandError
from infrastructure.mcp.install.npm import NpmPackages
from infrastructure.mcp.install.oci_images import OciImages, brought_images, images_of
from infrastructure.mcp.install.package_files import MAX_BYTES
from infrastructure.mcp.install.python_packages import PythonPackages

logger = logging.getLogger(__name__)

DEFAULT_DEADLINE_S = 900.0
_SHOWN_LOG_BYTES = 64 * 1024


class LocalMcpInstaller:
    """`environment` is the environment of installer processes, `confine` says what they may use. An
    installation is stopped after `deadline_s`. Nothing is copied from the data directory `home`."""

    def __init__(
        self,
        *,
        directories: InstallDirectories,
        npm: NpmPackages,
        python: PythonPackages,
        images: OciImages,
        launches: InstalledLaunches,
        environment: Mapping[str, str],
        home: Path,
        clock: Clock,
        ids: IdSource,
        copy_limits: CopyLimits | None = None,
        deadline_s: float = DEFAULT_DEADLINE_S,
        confine: ConfineInstaller | None = None,
    ) -> None:
        self._directories = directories
        self._npm = npm
        self._python = python
        self._images = images
        self._launches = launches
        self._environment = environment
        self._home = home
        self._clock = clock
        self._ids = ids
        self._copy_limits = copy_limits or CopyLimits()
        self._deadline_s = deadline_s
        self._confine = confine

    async def install(self, server: McpServer, on_progress: InstallProgressCallback) -> Installation:
        location = f"{server.organization_id}/{server.id}/{self._ids.new('ins')}"
        manifest = await self._make(server, location, on_progress)
        lock = None if manifest.lock is None else zlib.compress(manifest.lock.encode())
        return Installation(version=manifest.version, location=location, installed_at=self._clock.now(), lock=lock)

    async def restore(self, server: McpServer) -> bool:
        """Install on this machine what is recorded with the server, by its lock. False while
        another process of this machine does. Raises McpInstallFailure, CHANGED if its source has
        another version here."""
        recorded = server.installation
        assert recorded is not None  # asked for installed servers only
        with self._directories.building(recorded.location) as is_ours:
            if is_ours and not self.has(recorded):
                await asyncio.to_thread(self._directories.remove, recorded.location)
                await self._make(server, recorded.location, lambda _: None, recorded)
        return is_ours

    async def _make(
        self,
        server: McpServer,
        location: str,
        on_progress: InstallProgressCallback,
        recorded: Installation | None = None,
    ) -> Manifest:
        """Make the installation at `location`, or leave nothing there."""
        try:
            async with self._directories.images():
                target = await asyncio.to_thread(self._directories.create, location)
            with InstallLog(self._directories.log_path(server.organization_id, server.id)) as log:
                job = InstallJob(log=log, on_progress=on_progress, environment=self._environment, confine=self._confine)
                try:
                    manifest = await self._installed(server.config, target, job, recorded)
                except McpInstallFailure as failure:
                    log.note(failure.detail)
                    raise
                except asyncio.CancelledError:
                    log.note("stopped")
                    raise
                await asyncio.to_thread(self._directories.finish, location, manifest)
                log.note(f"installed version {manifest.version}")
        except BaseException as exc:
            await asyncio.to_thread(self._directories.remove, location)
            if isinstance(exc, OSError):
                raise disk_failure(exc) from exc
            raise
        return manifest

    async def uninstall(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        removed = await asyncio.to_thread(self._directories.installed, f"{organization_id}/{server_id}/*")
        await asyncio.to_thread(self._directories.remove_all, organization_id, server_id)
        if images_of(removed):
            await self._images.remove_containers(server_id)
        await self._remove_images(brought_images(removed))

    def has(self, installation: Installation) -> bool:
        return self._directories.is_complete(installation.location)

    def log(self, server: McpServer) -> str:
        try:
            data = self._directories.log_path(server.organization_id, server.id).read_bytes()
        except OSError:
            return ""
        return data[-_SHOWN_LOG_BYTES:].decode(errors="replace")

    async def tidy(self) -> tuple[InstalledServer, ...]:
        return await asyncio.to_thread(self._directories.tidy)

    async def remove(self, location: str) -> None:
        removed = await asyncio.to_thread(self._directories.installed, location)
        await asyncio.to_thread(self._directories.remove, location)
        await self._remove_images(brought_images(removed))

    async def _remove_images(self, images: frozenset[str]) -> None:
        """Remove those that no other installation has, or may have once it is made: none begins
        meanwhile."""
        if not images:
            return
        async with self._directories.images():
            others = await asyncio.to_thread(self._directories.installed)
            if None not in others:
                await self._images.remove(images - images_of(others))

    async def _installed(
        self, config: McpServerConfig, target: Path, job: InstallJob, recorded: Installation | None
    ) -> Manifest:
        lock = None if recorded is None or recorded.lock is None else _unpacked(recorded.lock)
        config = config if recorded is None else _pinned(config, recorded.version)
        try:
            async with asyncio.timeout(self._deadline_s):
                match config.kind:
                    case McpServerKind.NPM:
                        manifest = await self._npm.install(config, target, job, lock)
                    case McpServerKind.PYTHON:
                        manifest = await self._python.install(config, target, job, lock)
                    case McpServerKind.OCI:
                        version = None if recorded is None else recorded.version
                        brought = brought_images(await asyncio.to_thread(self._directories.installed))
                        manifest = await self._images.install(config, job, brought=brought, recorded=version)
                    case _:
                        manifest = await self._copy(config, target, job)
        except TimeoutError as exc:
            raise McpInstallFailure(
                McpInstallFailureKind.TIMEOUT, f"The installation was not done after {self._deadline_s:g} seconds."
            ) from exc
        if recorded is not None and manifest.version != recorded.version:
            detail = f"Its source has version {manifest.version} on this machine, and {recorded.version} is installed."
            raise McpInstallFailure(McpInstallFailureKind.CHANGED, detail)
        try:
            self._launches.launch(config, manifest, target)
        except NoSuchCommandError as exc:
            raise McpInstallFailure(McpInstallFailureKind.COMMAND_MISSING, str(exc)) from exc
        return manifest

    async def _copy(self, config: McpServerConfig, target: Path, job: InstallJob) -> Manifest:
        assert config.path is not None  # only these kinds are installed
        source = Path(config.path)
        job.step("copying", until=100)
        await asyncio.to_thread(check_source, source, self._home)
        copy = TreeCopy(source, target / CONTENT, self._copy_limits)
        copying = asyncio.create_task(asyncio.to_thread(copy.run))
        try:
            digest = await asyncio.shield(copying)
        except asyncio.CancelledError:
            copy.stop()
            await asyncio.wait([copying])
            raise
        return replace(Manifest(version=digest), preferred=single_executable(source))


def _unpacked(lock: bytes) -> str:
    """Raises McpInstallFailure FAILED for what is none, or is too large."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(lock, MAX_BYTES).decode()
    except (zlib.error, ValueError) as exc:
        raise _unusable_lock() from exc
    if not unpacking.eof:
        raise _unusable_lock()
    return text


def _unusable_lock() -> McpInstallFailure:
    return McpInstallFailure(McpInstallFailureKind.FAILED, "The recorded lock of the packages cannot be read.")


def _pinned(config: McpServerConfig, version: str) -> McpServerConfig:
    """The configuration for exactly this version of a registry's package; unchanged if it names the
    source otherwise."""
    try:
        return replace(config, version=version) if config.kind in (McpServerKind.NPM, McpServerKind.PYTHON) else config
    except ServiceError:  # a version in the name of the package, or a local file
        return config
