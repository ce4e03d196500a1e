"""The entry to the protocols of front ends and other agents, which loads their code on the first
request below their paths."""

from litestar.types import ASGIApp

from infrastructure.container import Container
from interfaces.http.stream_places import StreamPlaces
from interfaces.late_app import with_late_app

PATHS = ("/openai", "/ai-sdk", "/ag-ui", "/a2a")


def with_protocols(app: ASGIApp, container: Container, *, places: StreamPlaces, heartbeat_s: float) -> ASGIApp:
    def load() -> ASGIApp:
        from interfaces.http.protocols import protocols_app

        return protocols_app(container, places=places, heartbeat_s=heartbeat_s)

    return with_late_app(app, load, below=PATHS)
