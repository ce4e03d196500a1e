"""Secret values of a server's configuration, at the moment a connection needs them: named secrets read, all of them
hidden from logs and traces. Above: the transports.
"""

from collections.abc import Mapping
from typing import Protocol

from application.mcp.ports import McpFailureKind
from domain.ids import OrganizationId
from domain.secrets.secret import SecretRef, SecretValue
from infrastructure.mcp.faults import TransportFailedError, TransportFault
from infrastructure.redaction import Redactor, secrets_in


class SecretReader(Protocol):
    """Values of named secrets."""

    async def value(self, organization_id: OrganizationId, name: str) -> str | None:
        """The value, None if there is no such secret."""
        ...


class SecretValues:
    """Reads and hides. One for the process."""

    def __init__(self, *, secrets: SecretReader, redactor: Redactor) -> None:
        self._secrets = secrets
        self._redactor = redactor

    async def values(
        self, organization_id: OrganizationId, group: str, given: Mapping[str, SecretValue]
    ) -> dict[str, str]:
        """The values of `group` (env, headers). Raises TransportFailedError naming a secret that does not exist."""
        values = {name: await self.value(organization_id, f"{group}.{name}", value) for name, value in given.items()}
        for name, value in values.items():
            is_named = isinstance(given[name], SecretRef)
            self._redactor.register(*((value,) if is_named else ()), *secrets_in(name, value))
        return values

    async def headers(self, organization_id: OrganizationId, given: Mapping[str, SecretValue]) -> dict[str, str]:
        """The same for HTTP headers, whose values are one line (RFC 9110, section 5.5)."""
        values = await self.values(organization_id, "headers", given)
        for name, value in values.items():
            require_header_value(f"headers.{name}", value)
        return values

    async def header(self, organization_id: OrganizationId, place: str, given: SecretValue) -> str:
        """The value of a header that is all secret."""
        value = await self.value(organization_id, place, given)
        require_header_value(place, value)
        self.hide(value)
        return value

    async def value(self, organization_id: OrganizationId, place: str, given: SecretValue) -> str:
        """The value that stands, or is named, at `place` of a configuration. Raises TransportFailedError."""
        if isinstance(given, str):
            return given
        value = await self._secrets.value(organization_id, given.name)
        if value is None:
            raise TransportFailedError(_missing(given.name, place))
        self._redactor.register(value)
        return value

    def hide(self, *values: str) -> None:
        """Keep these out of logs and traces."""
        self._redactor.register(*values)

    def redact(self, text: str) -> str:
        """Text that others wrote, such as a server's error output, without the secrets known so far."""
        return self._redactor.redact(text)


def require_header_value(place: str, value: str) -> None:
    """Raise TransportFailedError for a value that would be more than a header."""
    if any(character in value for character in "\r\n\0"):
        detail = f"The value of the server's {place} has line ends, which no header may have."
        raise TransportFailedError(
            TransportFault(kind=McpFailureKind.NOT_CONNECTED, detail=detail, not_executed=True, over=True)
        )


def _missing(name: str, place: str) -> TransportFault:
    detail = f"The secret {name!r}, which the server's {place} refers to, does not exist."
    return TransportFault(kind=McpFailureKind.NOT_CONNECTED, detail=detail, not_executed=True, over=True)
