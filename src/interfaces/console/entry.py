"""The entry to the console, which loads its code on the first request below `/console`."""

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.system.lazy import Lazy
from infrastructure.container import Container
from interfaces.console_paths import PATH
from interfaces.http.runs.frames import EventFrames
from interfaces.http.stream_places import StreamPlaces


def with_console(
    app: ASGIApp, container: Container, *, frames: EventFrames, places: StreamPlaces, heartbeat_s: float
) -> ASGIApp:
    def load() -> ASGIApp:
        from interfaces.console.app import console_app

        return console_app(container, frames=frames, places=places, heartbeat_s=heartbeat_s)

    console = Lazy(load)  # built in a thread, so that other requests are served meanwhile

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP and is_below(scope["path"]):
            await (await console.warm())(scope, receive, send)
            return
        await app(scope, receive, send)

    return routed


def is_below(path: str) -> bool:
    return path == PATH or path.startswith(f"{PATH}/")
