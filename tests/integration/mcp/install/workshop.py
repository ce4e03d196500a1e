"""An installer over a directory of the test's, and servers to install with it."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from application.mcp.ports import InstallProgress
from domain.ids import McpServerId
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from infrastructure.assembly import mcp as mcp_assembly
from infrastructure.confinement.grants import Grants
from infrastructure.confinement.sandbox import Sandbox, SandboxMode
from infrastructure.http.egress import EgressPolicy
from infrastructure.mcp.containers.engine import ContainerEngine
from infrastructure.mcp.install.copying import CopyLimits
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.installer import LocalMcpInstaller
from infrastructure.mcp.install.launches import InstalledLaunches
from infrastructure.mcp.install.node import NodeRuntime
from infrastructure.mcp.install.npm import NpmPackages
from infrastructure.mcp.install.oci_images import OciImages
from infrastructure.mcp.install.python_packages import PythonPackages
from infrastructure.mcp.install.server_confinement import ServerConfinement
from infrastructure.runtime.system import RandomIds, SystemClock
from infrastructure.settings import Settings, installer_environment
from tests.builders import a_server, numbered
from tests.completeness import beyond
from tests.integration.confinement.world import machine_of


@dataclass(slots=True)
class Workshop:
    """Everything that installs, over `home`. `environment` stands for the service's own. With a
    `profile`, installers are confined by it."""

    home: Path
    environment: Mapping[str, str] = field(default_factory=installer_environment)
    packaged_node: Path | None = None
    has_pip: bool = True
    uv: str | None = None
    profile: str | None = None
    deadline_s: float = 240.0
    copy_limits: CopyLimits | None = None
    engine: ContainerEngine = field(
        default_factory=lambda: mcp_assembly.container_engine(
            Settings(mcp_container_engine="none"), egress=EgressPolicy()
        )
    )
    directories: InstallDirectories = field(init=False)
    node: NodeRuntime = field(init=False)
    launches: InstalledLaunches = field(init=False)
    installer: LocalMcpInstaller = field(init=False)
    progress: list[InstallProgress] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.directories = InstallDirectories(self.home / "servers")
        self.node = NodeRuntime(
            search_path=self.environment["PATH"],
            packaged=self.packaged_node,
            own_commands=self.home / "node" / "bin",
        )
        self.launches = InstalledLaunches(directories=self.directories, node=self.node)
        self.installer = LocalMcpInstaller(
            directories=self.directories,
            npm=NpmPackages(node=self.node),
            python=PythonPackages(python=Path(sys.executable), has_pip=self.has_pip, uv=self.uv),
            images=OciImages(engine=self.engine),
            launches=self.launches,
            environment=self.environment,
            home=self.home,
            clock=SystemClock(),
            ids=RandomIds(),
            copy_limits=self.copy_limits,
            deadline_s=self.deadline_s,
            confine=None if self.profile is None else self._confinement(self.profile).of_installer,
        )

    def _confinement(self, profile: str) -> ServerConfinement:
        sandbox = Sandbox(
            mode=SandboxMode.AUTO,
            private=(self.home,),
            granted=Grants(),
            ports=None,
            user_home=Path(self.environment["HOME"]),
            probe=lambda: machine_of(profile),
        )
        return ServerConfinement(
            sandbox=sandbox,
            directories=self.directories,
            search_path=self.environment["PATH"],
            runtime=(Path(sys.prefix), Path(sys.base_prefix)),
        )

    async def install(self, server: McpServer) -> McpServer:
        """The server, installed; skips the test where there is no registry to install from."""
        try:
            installation = await self.installer.install(server, self.progress.append)
        except McpInstallFailure as failure:
            if failure.kind is McpInstallFailureKind.REGISTRY_UNREACHABLE:
                pytest.skip(beyond(failure.detail))
            raise
        return installed(server, installation)

    async def failure_of(self, server: McpServer) -> McpInstallFailure:
        """How the installation fails, which it must, leaving nothing."""
        with pytest.raises(McpInstallFailure) as failed:
            await self.installer.install(server, self.progress.append)
        if failed.value.kind is McpInstallFailureKind.REGISTRY_UNREACHABLE:
            pytest.skip(beyond(failed.value.detail))
        assert self.leftovers(server) == []
        return failed.value

    def leftovers(self, server: McpServer) -> list[str]:
        """What there is of the server on the disk besides its log."""
        place = self.directories.log_path(server.organization_id, server.id).parent
        return sorted(path.name for path in place.glob("*") if path.name != "install.log")


def installed(server: McpServer, installation: Installation) -> McpServer:
    return McpServer(
        id=server.id,
        organization_id=server.organization_id,
        version=server.version,
        config=server.config,
        created_at=server.created_at,
        updated_at=server.updated_at,
        installation=installation,
    )


def packaged(kind: McpServerKind, package: str, version: str | None = None, **settings: Any) -> McpServer:
    return a_server(config=McpServerConfig(slug="packaged", kind=kind, package=package, version=version, **settings))


def npm(package: str, version: str | None = None, **settings: Any) -> McpServer:
    return packaged(McpServerKind.NPM, package, version, **settings)


def python(package: str, version: str | None = None, **settings: Any) -> McpServer:
    return packaged(McpServerKind.PYTHON, package, version, **settings)


def image(name: str, version: str | None = None, **settings: Any) -> McpServer:
    return packaged(McpServerKind.OCI, name, version, **settings)


def copied(path: Path, number: int = 1, **settings: Any) -> McpServer:
    config = McpServerConfig(slug="copied", kind=McpServerKind.CUSTOM, path=str(path), **settings)
    return a_server(McpServerId(numbered("mcp", number)), config=config)
