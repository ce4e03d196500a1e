"""What each server in a container may use, and its start. Above: transports. Below: the container
engine."""

import asyncio
from collections.abc import Callable, Mapping

from application.mcp.ports import McpFailureKind
from domain.mcp.network import ServerNetwork
from domain.mcp.server import McpServer
from infrastructure.mcp.containers.contained_server import ContainedServer
from infrastructure.mcp.containers.engine import DATA_PATH, ContainerEngine, ContainerSpec, EngineError, EngineFault
from infrastructure.mcp.containers.marks import ContainerMarks
from infrastructure.mcp.faults import TransportFailedError, TransportFault
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.transports.launch import Launch
from infrastructure.mcp.transports.started_server import StartedServer, StartServer
from infrastructure.mcp.transports.stderr_log import StderrLog


class ServerContainers:
    """Rules:
    - A container has the image that was installed, by its digest, and the server's variables.
    - It writes its data directory, which is its HOME (another one for each person that it acts
      for), and a bounded `/tmp`. Of the machine it sees nothing else. It has no capabilities and
      cannot gain rights.
    - `limits` (`memory`, `processes`) and `cpus` hold for it with all that it starts.
    - `ports` None gives it the engine's network, empty gives it none. A container is not held to
      numbers of ports: none is started then.
    """

    def __init__(
        self,
        *,
        engine: ContainerEngine,
        marks: ContainerMarks,
        directories: InstallDirectories,
        limits: Mapping[str, int],
        cpus: float,
        ports: tuple[int, ...] | None,
    ) -> None:
        self._engine = engine
        self._marks = marks
        self._directories = directories
        self._limits = limits
        self._cpus = cpus
        self._ports = ports

    def starting(self, server: McpServer, launch: Launch, env: Mapping[str, str], log: StderrLog) -> StartServer:
        """Starts the server's container. `log` gets what the engine says of a failure."""

        async def start(*, kill_grace_s: float, on_exit: Callable[[], None]) -> StartedServer:
            if self._ports and server.config.network is ServerNetwork.FULL:
                raise _fault("DRAGOMAN_MCP_PORTS names ports, to which containers are not held: set it to all or none.")
            try:
                return await ContainedServer.start(self._engine, await self._spec(server, launch, env), on_exit=on_exit)
            except EngineError as error:
                if error.said:
                    log.note(error.said)
                is_gone = error.fault is EngineFault.NOT_FOUND
                kind = McpFailureKind.NOT_INSTALLED if is_gone else McpFailureKind.NOT_CONNECTED
                raise _fault(str(error), kind) from error

        return start

    async def _spec(self, server: McpServer, launch: Launch, env: Mapping[str, str]) -> ContainerSpec:
        data = await asyncio.to_thread(self._directories.data, server)
        return ContainerSpec(
            image=launch.command,
            args=launch.args,
            environment={"HOME": DATA_PATH, "TMPDIR": "/tmp", **env},  # noqa: S108 (the container's)
            data=data.resolve(),
            memory=self._limits.get("memory", 0),
            processes=self._limits.get("processes", 0),
            cpus=self._cpus,
            network=self._ports is None and server.config.network is ServerNetwork.FULL,
            labels=self._marks.labels(server.tested_id or server.id),
        )


def _fault(detail: str, kind: McpFailureKind = McpFailureKind.NOT_CONNECTED) -> TransportFailedError:
    return TransportFailedError(TransportFault(kind=kind, detail=detail))
