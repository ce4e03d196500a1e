"""Applications that are built at their first request, to save memory in services that are never
asked for them (ADR 0028)."""

from collections.abc import Callable, Collection

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from application.system.lazy import Lazy


def with_late_app(app: ASGIApp, load: Callable[[], ASGIApp], *, below: Collection[str]) -> ASGIApp:
    """`app`, and for paths below these the application that `load` imports and builds. It is built
    in a thread, so that other requests are served meanwhile."""
    late = Lazy(load)
    prefixes = tuple(f"{path}/" for path in below)

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP and f"{scope['path']}/".startswith(prefixes):
            await (await late.warm())(scope, receive, send)
            return
        await app(scope, receive, send)

    return routed
