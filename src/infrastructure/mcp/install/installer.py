"""The `McpInstaller` port on this machine: installs by kind into the data directory, completely or
not at all."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from application.mcp.ports import (
    InstalledServer,
    InstallProgressCallback,
    McpInstallFailure,
    McpInstallFailureKind,
)
from application.system.ports import Clock, IdSource
from domain.ids import McpServerId, OrganizationId
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from infrastructure.mcp.install.copying import CopyLimits, TreeCopy, check_source, single_executable
from infrastructure.mcp.install.directories import InstallDirectories, Manifest
from infrastructure.mcp.install.job import ConfineInstaller, InstallJob, InstallLog, disk_failure
from infrastructure.mcp.install.launches import CONTENT, InstalledLaunches, NoSuchCommandError
from infrastructure.mcp.install.npm import NpmPackages
from infrastructure.mcp.install.oci_images import OciImages
from infrastructure.mcp.install.python_packages import PythonPackages

logger = logging.getLogger(__name__)

DEFAULT_DEADLINE_S = 900.0
_SHOWN_LOG_BYTES = 64 * 1024


class LocalMcpInstaller:
    """`environment` is the environment of installer processes, `confine` says what they may use. An installation is stopped after
    `deadline_s`. Nothing is copied from the data directory `home`."""

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
        try:
            target = await asyncio.to_thread(self._directories.create, location)
            with InstallLog(self._directories.log_path(server.organization_id, server.id)) as log:
                job = InstallJob(log=log, on_progress=on_progress, environment=self._environment, confine=self._confine)
                try:
                    manifest = await self._installed(server.config, target, job)
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
        return Installation(version=manifest.version, location=location, installed_at=self._clock.now())

    async def uninstall(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        await asyncio.to_thread(self._directories.remove_all, organization_id, server_id)

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
        await asyncio.to_thread(self._directories.remove, location)

    async def _installed(self, config: McpServerConfig, target: Path, job: InstallJob) -> Manifest:
        try:
            async with asyncio.timeout(self._deadline_s):
                match config.kind:
                    case McpServerKind.NPM:
                        manifest = await self._npm.install(config, target, job)
                    case McpServerKind.PYTHON:
                        manifest = await self._python.install(config, target, job)
                    case McpServerKind.OCI:
                        manifest = await self._images.install(config, job)
                    case _:
                        manifest = await self._copy(config, target, job)
        except TimeoutError as exc:
            raise McpInstallFailure(
                McpInstallFailureKind.TIMEOUT, f"The installation was not done after {self._deadline_s:g} seconds."
            ) from exc
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
