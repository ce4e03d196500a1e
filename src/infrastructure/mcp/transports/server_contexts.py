"""TLS contexts of remote servers with a client certificate or certificate authorities. Above:
endpoints. Below: OpenSSL."""

import asyncio
import hashlib
import logging
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from application.system.lru import LruCache
from application.system.ports import Clock
from domain.mcp.server import McpServer
from domain.mcp.server_tls import ServerTls
from infrastructure.mcp.faults import TransportFailedError, auth_fault
from infrastructure.mcp.secret_values import SecretValues
from infrastructure.mcp.transports.certificates import read_certificates

logger = logging.getLogger(__name__)

ENDS_SOON = timedelta(days=14)
"""Before the end of a certificate, the log has a warning each day."""
_DAY = timedelta(days=1)
_CAPACITY = 1_000


class ClientTls:
    """The context of a server. It is asked for before each request, so that an expired certificate
    is said to be one."""

    def __init__(
        self, context: ssl.SSLContext, server: McpServer, *, expires_at: datetime | None, clock: Clock
    ) -> None:
        self._context = context
        self._server = server
        self._expires_at = expires_at
        self._clock = clock
        self._warned_at: datetime | None = None

    @property
    def context(self) -> ssl.SSLContext:
        """Raises TransportFailedError if the certificate has expired."""
        if self._expires_at is not None:
            now = self._clock.now()
            if now >= self._expires_at:
                raise TransportFailedError(auth_fault(f"The server's client certificate expired at {self._end}."))
            if self._expires_at - now <= ENDS_SOON and (self._warned_at is None or now - self._warned_at >= _DAY):
                self._warned_at = now
                ids = {"server_id": self._server.id, "organization_id": self._server.organization_id}
                logger.warning(
                    "the client certificate for the MCP server %s expires at %s",
                    self._server.config.slug,
                    self._end,
                    extra=ids,
                )
        return self._context

    @property
    def _end(self) -> str:
        return f"{self._expires_at:%Y-%m-%d %H:%M} UTC"


class ServerContexts:
    """One per process. Connections of a server with the same certificates share a context."""

    def __init__(self, *, secrets: SecretValues, clock: Clock) -> None:
        self._secrets = secrets
        self._clock = clock
        self._known: LruCache[bytes, ClientTls] = LruCache(_CAPACITY)

    async def of(self, server: McpServer) -> ClientTls | None:
        """None for a server without TLS settings. Raises TransportFailedError for a key that is of
        no use."""
        tls = server.config.tls
        if tls is None:
            return None
        key = None
        if tls.private_key is not None:
            key = await self._secrets.value(server, "tls.private_key", tls.private_key)
            self._secrets.hide(server, key)
        parts = (server.id, server.organization_id, tls.certificate or "", key or "", tls.ca or "")
        digest = hashlib.sha256("\0".join(parts).encode()).digest()
        known = self._known.get(digest)
        if known is None:
            context = await asyncio.to_thread(self._opened, tls, key)
            known = ClientTls(context, server, expires_at=tls.expires_at, clock=self._clock)
            self._known.put(digest, known)
        return known

    def _opened(self, tls: ServerTls, key: str | None) -> ssl.SSLContext:
        found = read_certificates(tls, key, self._clock.now())
        if isinstance(found, list):
            detail = "; ".join(f"{wrong.path} {wrong.message}" for wrong in found)
            raise TransportFailedError(auth_fault(f"The server's TLS settings cannot be used: {detail}."))
        try:
            context = ssl.create_default_context(cadata=tls.ca)
            context.set_alpn_protocols(["http/1.1"])
            if tls.certificate is not None and key is not None:
                with _readable(f"{tls.certificate}\n{key}\n".encode()) as path:
                    context.load_cert_chain(path, password="")
        except (ssl.SSLError, ValueError) as error:
            detail = "The server's TLS settings cannot be used: OpenSSL does not take these certificates."
            raise TransportFailedError(auth_fault(detail)) from error
        return context


@contextmanager
def _readable(secret: bytes) -> Iterator[str]:
    """A path of these bytes, in memory where the system can: OpenSSL reads keys from files."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("tls")
        try:
            os.write(descriptor, secret)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:  # only its owner may read it
        file.write(secret)
        file.flush()
        yield file.name
