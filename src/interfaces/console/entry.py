"""The way into the console: of all that is below `/console` nothing is loaded before somebody goes there."""

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.system.lazy import Lazy
from infrastructure.container import Container
from interfaces.console.sessions import PATH
from interfaces.http.runs.frames import EventFrames


def with_console(app: ASGIApp, container: Container, *, frames: EventFrames, heartbeat_s: float) -> ASGIApp:
    """`app`, with the console beside it."""

    def load() -> ASGIApp:
        from interfaces.console.app import console_app

        return console_app(container, frames=frames, heartbeat_s=heartbeat_s)

    console = Lazy(load)  # made in a thread, so that other requests are answered meanwhile

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP and is_below(scope["path"]):
            await (await console.warm())(scope, receive, send)
            return
        await app(scope, receive, send)

    return routed


def is_below(path: str) -> bool:
    """Whether the console answers there."""
    return path == PATH or path.startswith(f"{PATH}/")
