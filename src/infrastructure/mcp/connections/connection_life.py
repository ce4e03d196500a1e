"""Forwards the events of one connection to the server's record and the pool. Above: the pool."""

import logging
from collections.abc import Callable

from application.mcp.ports import McpFailure, McpFailureKind
from application.system.ports import Clock
from infrastructure.mcp.catalogs.tool_changes import ToolChanges
from infrastructure.mcp.connections.connection import McpConnection
from infrastructure.mcp.connections.connection_key import ConnectionKey
from infrastructure.mcp.connections.server_facts import ServerFacts
from infrastructure.mcp.connections.server_record import ServerRecord

logger = logging.getLogger(__name__)


class ConnectionLife:
    def __init__(
        self,
        record: ServerRecord,
        key: ConnectionKey | None,
        clock: Clock,
        on_lost: Callable[["ConnectionLife", float], None],
        on_end: Callable[[McpConnection], None],
        *,
        is_of_person: bool = False,
    ) -> None:
        """`is_of_person`: a missing grant concerns the person of the connection, and not the
        server; so does the end of a process that has their secrets."""
        self.record = record
        self.key = key
        self.connection: McpConnection | None = None
        self.changes: ToolChanges | None = None
        self._clock = clock
        self._on_lost = on_lost
        self._on_end = on_end
        self._is_of_person = is_of_person
        self.is_process_of_person = is_of_person and not record.server.config.kind.is_remote
        self._opened_at: float | None = None
        self._is_told = False

    def connected(self, facts: ServerFacts) -> None:
        self._opened_at = self._clock.monotonic()
        self.record.connected(facts.protocol_version)

    def failed(self, failure: McpFailure, *, needs_auth: bool) -> None:
        self._is_told = True
        if not (self.is_process_of_person or (needs_auth and self._is_of_person)):
            self.record.failed(failure, needs_auth=needs_auth)
            return
        self.record.abandoned()
        if failure.kind is McpFailureKind.NOT_CONNECTED:
            self._on_lost(self, 0.0)  # there is no pause for all: the person's process has the cool-down of crashes

    def lost(self, detail: str, *, needs_auth: bool = False) -> None:
        self._is_told = True
        assert self._opened_at is not None  # it was open before
        server = self.record.server
        ids = {"server_id": server.id, "organization_id": server.organization_id}
        logger.info("MCP connection lost", extra={**ids, "detail": detail})
        is_of_person = self.is_process_of_person or (needs_auth and self._is_of_person)
        self.record.disconnected(None if is_of_person else detail, needs_auth=needs_auth)
        self._on_lost(self, self._clock.monotonic() - self._opened_at)

    def ended(self) -> None:
        if not self._is_told:
            if self._opened_at is not None:
                self.record.disconnected()
            else:
                self.record.abandoned()
        self.listen_no_more()
        if self.connection is not None:
            self._on_end(self.connection)

    def listen_no_more(self) -> None:
        """Ignore changes that the server announces."""
        if self.changes is not None:
            self.changes.close()
