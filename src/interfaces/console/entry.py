"""The way into the console: of all that is below `/console` nothing is loaded before somebody goes there."""

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.system.lazy import Lazy
from application.system.ports import Clock
from interfaces.console.sessions import PATH, ConsoleSessions
from interfaces.http.runs.frames import EventFrames
from interfaces.http.use_cases import UseCases


def with_console(
    app: ASGIApp,
    use_cases: UseCases,
    *,
    sessions: ConsoleSessions,
    clock: Clock,
    frames: EventFrames,
    version: str,
    heartbeat_s: float,
) -> ASGIApp:
    """`app`, with the console beside it."""

    def load() -> ASGIApp:
        from interfaces.console.app import console_app

        return console_app(
            use_cases, sessions=sessions, clock=clock, frames=frames, version=version, heartbeat_s=heartbeat_s
        )

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
