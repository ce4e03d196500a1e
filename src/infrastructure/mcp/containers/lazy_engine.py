"""The `ContainerEngine` port, whose adapter is loaded once there is a socket of an engine: its HTTP
client takes megabytes."""

from collections.abc import Callable
from pathlib import Path

from domain.mcp.images import OciImage
from infrastructure.mcp.containers.engine import (
    Container,
    ContainerEngine,
    ContainerSpec,
    EngineError,
    EngineFault,
    PulledImage,
)


class LazyContainerEngine:
    """`find` looks for the socket; `load` makes the adapter."""

    def __init__(self, find: Callable[[], Path | None], load: Callable[[], ContainerEngine]) -> None:
        self._find = find
        self._load = load
        self._loaded: ContainerEngine | None = None

    async def describe(self) -> str:
        return await self._engine().describe()

    async def pull(self, image: OciImage, on_progress: Callable[[str], None]) -> PulledImage:
        return await self._engine().pull(image, on_progress)

    async def start(self, spec: ContainerSpec) -> Container:
        return await self._engine().start(spec)

    async def remove_all(self, label: str, is_meant: Callable[[str], bool]) -> int:
        return await self._engine().remove_all(label, is_meant)

    async def remove_image(self, image: str) -> bool:
        return await self._engine().remove_image(image)

    def _engine(self) -> ContainerEngine:
        if self._loaded is None:
            if self._find() is None:
                detail = "No container engine was found. DRAGOMAN_MCP_CONTAINER_ENGINE names the socket of one."
                raise EngineError(EngineFault.UNREACHABLE, detail)
            self._loaded = self._load()
        return self._loaded
