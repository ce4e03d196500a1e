"""Labels of containers, by which those are found whose service is gone."""

import hashlib
import socket
from pathlib import Path

from infrastructure.confinement.leftovers import MARK, is_left, new_mark
from infrastructure.mcp.containers.engine import ContainerEngine

LABEL = "dragoman.started-by"
SERVER_LABEL = "dragoman.server"


class ContainerMarks:
    """A mark names the installation with HOME `home`, and the process of it that started the
    container."""

    def __init__(self, *, home: Path) -> None:
        self._home = home

    def labels(self, server_id: str) -> dict[str, str]:
        """Those of a new container."""
        return {LABEL: f"{self._installation()}/{new_mark()[MARK]}", SERVER_LABEL: server_id}

    async def end_leftovers(self, engine: ContainerEngine) -> int:
        """End containers whose process of this installation is gone; returns how many. Raises
        EngineError."""
        own = self._installation()

        def is_meant(value: str) -> bool:
            installation, _, mark = value.partition("/")
            return installation == own and is_left(mark)

        return await engine.remove_all(LABEL, is_meant)

    def _installation(self) -> str:
        """Process ids are those of one machine or container, which the host name tells apart."""
        place = f"{socket.gethostname()}:{self._home.stat().st_ino}:{self._home}"
        return hashlib.sha256(place.encode()).hexdigest()[:16]
