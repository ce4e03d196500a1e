"""Secret values of a server's configuration, read when a connection needs them, and hidden from
logs and traces. Above: the transports."""

from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import quote

from application.mcp.account_secrets import SECRETS_MISSING, PersonSecretStore
from application.mcp.ports import McpFailureKind
from domain.errors import ServiceError
from domain.ids import OrganizationId
from domain.mcp.given_secrets import account_owner
from domain.mcp.server import McpServer
from domain.secrets.names import references_in, without_references
from domain.secrets.secret import SECRET_UNAVAILABLE, SecretRef, SecretValue, person_secret
from infrastructure.mcp.faults import TransportFailedError, TransportFault, needs_auth_fault
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.secrets.redaction import secrets_in


class SecretReader(Protocol):
    async def value(self, organization_id: OrganizationId, name: str) -> str | None:
        """The value; None if there is no such secret."""
        ...


class SecretValues:
    """One per process."""

    def __init__(
        self,
        *,
        secrets: SecretReader,
        known: KnownSecrets,
        person_secrets: PersonSecretStore | None = None,
        forget: Callable[[OrganizationId], None] | None = None,
    ) -> None:
        """`forget` drops values of secrets elsewhere that are kept in memory. Without
        `person_secrets` no person has any."""
        self._secrets = secrets
        self._person_secrets = person_secrets
        self._known = known
        self._forget = forget

    async def values(self, server: McpServer, group: str, given: Mapping[str, SecretValue]) -> dict[str, str]:
        """The values of `group` (env, headers). Raises TransportFailedError for a missing
        secret."""
        values = {name: await self.value(server, f"{group}.{name}", value) for name, value in given.items()}
        for name, value in values.items():
            is_named = isinstance(given[name], SecretRef)
            self._known.register(server, *((value,) if is_named else ()), *secrets_in(name, value))
        return values

    async def headers(self, server: McpServer, given: Mapping[str, SecretValue]) -> dict[str, str]:
        """The values of HTTP headers, each a single line (RFC 9110, section 5.5)."""
        values = await self.values(server, "headers", given)
        for name, value in values.items():
            require_header_value(f"headers.{name}", value)
        return values

    def forget(self, server: McpServer) -> None:
        """The server refused a value: it may have been rotated."""
        if self._forget is not None:
            self._forget(server.organization_id)

    async def header(self, server: McpServer, place: str, given: SecretValue) -> str:
        value = await self.value(server, place, given)
        require_header_value(place, value)
        self.hide(server, value)
        return value

    async def url(self, server: McpServer, given: str) -> str:
        """The URL with its references replaced by secrets."""
        values = [await self.value(server, "url", SecretRef(name)) for name in references_in(given)]
        return without_references(given, [quote(value, safe="") for value in values])

    async def value(self, server: McpServer, place: str, given: SecretValue) -> str:
        """The value at `place` of a configuration, literal or by name. Raises
        TransportFailedError."""
        if isinstance(given, str):
            return given
        if (name := person_secret(given.name)) is not None:
            return await self._of_person(server, name)
        try:
            value = await self._secrets.value(server.organization_id, given.name)
        except ServiceError as error:
            if error.code != SECRET_UNAVAILABLE:
                raise
            raise TransportFailedError(_not_connected(error.detail)) from error
        if value is None:
            raise TransportFailedError(_missing(given.name, place))
        self.hide(server, value)
        return value

    async def _of_person(self, server: McpServer, name: str) -> str:
        """What the person gave that the server acts for. Raises TransportFailedError, with
        `needs_auth`."""
        owner = account_owner(server)
        if owner is not None and self._person_secrets is not None:
            given = await self._person_secrets.load(owner)
            if given is not None and name in (values := given.of(server.config)):
                self.hide(server, values[name])
                return values[name]
        raise TransportFailedError(needs_auth_fault(SECRETS_MISSING))

    def hide(self, server: McpServer, *values: str) -> None:
        """Hide values passed to the server."""
        self._known.register(server, *values)

    def redact(self, server: McpServer, text: str) -> str:
        """The server's output, without its secrets."""
        return self._known.redact(server, text)


def require_header_value(place: str, value: str) -> None:
    """Raises TransportFailedError for a value with line ends."""
    if any(character in value for character in "\r\n\0"):
        raise TransportFailedError(
            _not_connected(f"The value of the server's {place} has line ends, which no header may have.")
        )


def _missing(name: str, place: str) -> TransportFault:
    return _not_connected(f"The secret {name!r}, which the server's {place} refers to, does not exist.")


def _not_connected(detail: str) -> TransportFault:
    return TransportFault(kind=McpFailureKind.NOT_CONNECTED, detail=detail, not_executed=True, over=True)
