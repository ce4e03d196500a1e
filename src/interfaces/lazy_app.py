"""Applications that not every service is asked for: imported and made at their first request, so that the others neither wait
for them at the start nor hold them."""

import asyncio
import threading
from collections.abc import Callable

from litestar.types import ASGIApp, Receive, Scope, Send


class LazyApp:
    """The application that `make` returns. It is made once, in a thread: whatever else is asked for meanwhile is answered."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._made: ASGIApp | None = None
        self._making = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        app = self._made
        if app is None:
            app = await asyncio.to_thread(self.made)
        await app(scope, receive, send)

    def made(self) -> ASGIApp:
        """The application, made by whoever comes first."""
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made
