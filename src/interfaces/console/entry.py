"""The entry to the console, which loads its code on the first request below `/console`."""

from litestar.types import ASGIApp

from infrastructure.container import Container
from interfaces.console_paths import PATH
from interfaces.http.runs.frames import EventFrames
from interfaces.http.stream_places import StreamPlaces
from interfaces.late_app import with_late_app


def with_console(
    app: ASGIApp, container: Container, *, frames: EventFrames, places: StreamPlaces, heartbeat_s: float
) -> ASGIApp:
    def load() -> ASGIApp:
        from interfaces.console.app import console_app

        return console_app(container, frames=frames, places=places, heartbeat_s=heartbeat_s)

    return with_late_app(app, load, below=[PATH])
