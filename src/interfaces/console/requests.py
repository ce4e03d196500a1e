"""The request as the console's handlers see it."""

from collections.abc import AsyncGenerator

from litestar import Request
from litestar.datastructures import State
from litestar.plugins.htmx import HTMXDetails

from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from interfaces.console.sessions import SignedIn
from interfaces.disconnects import whole

_MAX_FIELDS = 5_000


class ConsoleRequest(Request[None, SignedIn, State]):
    """A request from a browser, signed in except on public routes."""

    async def stream(self) -> AsyncGenerator[bytes]:
        """The form in parts. Raises INVALID `client_disconnected`."""
        async for part in whole(super().stream()):
            yield part

    async def body(self) -> bytes:
        """The raw form. Raises TOO_LARGE `too_many_values`."""
        body = await super().body()
        if body.count(b"&") > _MAX_FIELDS:
            raise ServiceError("too_many_values", ErrorKind.TOO_LARGE, f"A form has at most {_MAX_FIELDS} fields.")
        return body

    @property
    def htmx(self) -> HTMXDetails:
        """Details of htmx; false without its headers."""
        return HTMXDetails(self)

    @property
    def person(self) -> SignedIn | None:
        """The signed-in person, or None."""
        found: SignedIn | None = self.scope.get("auth")
        return found

    @property
    def principal(self) -> Principal:
        return self.auth.principal
