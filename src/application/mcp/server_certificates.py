"""Certificates and keys of servers, read when they are saved or tested."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from application.secrets.ports import SecretStore
from application.system.ports import Clock
from domain.errors import ServiceError, Violation, invalid
from domain.ids import OrganizationId
from domain.mcp.auth import ServerAuth, secrets_of
from domain.mcp.server import McpServerConfig
from domain.mcp.server_tls import ServerTls
from domain.secrets.secret import SECRET_UNAVAILABLE, SecretValue

ReadCertificates = Callable[[ServerTls, str | None, datetime], ServerTls | list[Violation]]
"""The certificates with subject and expiry, or what is wrong with them now. The key is None where
it cannot be read."""

FaultOfKey = Callable[[str], str | None]
"""Why a private key in PEM signs no assertions; None for one that does."""


class ServerCertificates:
    """Rules:
    - A certificate that cannot be read, is expired, is not valid yet, or is not for clients is
      rejected, and so are authorities that cannot be read.
    - A key that has a password, or does not belong to the certificate, is rejected. A named secret
      that does not exist yet is not: connections say so.
    - So is a key of `auth` that signs no assertions: its form, its algorithm or its size is wrong.
    - Subject and expiry are those of the certificate, whatever was given.
    """

    def __init__(self, *, secrets: SecretStore, read: ReadCertificates, fault_of_key: FaultOfKey, clock: Clock) -> None:
        self._secrets = secrets
        self._read = read
        self._fault_of_key = fault_of_key
        self._clock = clock

    async def checked(
        self, organization_id: OrganizationId, config: McpServerConfig, former: McpServerConfig | None = None
    ) -> McpServerConfig:
        """The configuration, with what its certificates say. Those of `former` stay as they are.
        Raises INVALID `mcp_server_invalid`."""
        await self._check_key(organization_id, config.auth, None if former is None else former.auth)
        tls = config.tls
        if tls is None or (former is not None and tls == former.tls):
            return config
        key = None if tls.private_key is None else await self._value(organization_id, tls.private_key)
        found = self._read(tls, key, self._clock.now())
        if isinstance(found, list):
            raise invalid("mcp_server_invalid", "The MCP server is not valid.", *found)
        return replace(config, tls=found)

    async def _check_key(
        self, organization_id: OrganizationId, auth: ServerAuth | None, former: ServerAuth | None
    ) -> None:
        key = None if auth is None else secrets_of(auth).get("private_key")
        if key is None or (former is not None and secrets_of(former).get("private_key") == key):
            return
        pem = await self._value(organization_id, key)
        if pem is not None and (fault := self._fault_of_key(pem)) is not None:
            wrong = Violation(path="auth.private_key", message=fault)
            raise invalid("mcp_server_invalid", "The MCP server is not valid.", wrong)

    async def _value(self, organization_id: OrganizationId, given: SecretValue) -> str | None:
        if isinstance(given, str):
            return given
        try:
            return await self._secrets.value(organization_id, given.name)
        except ServiceError as error:
            if error.code != SECRET_UNAVAILABLE:
                raise
            return None
