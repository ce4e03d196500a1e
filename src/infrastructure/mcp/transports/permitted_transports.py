"""Transports of the servers that their organization may have: the check before anything is started
or connected, for every caller."""

from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.kinds import kind_refusal
from domain.mcp.server import McpServer
from infrastructure.mcp.transports.server_transports import LateTransport, OpenTransport
from infrastructure.mcp.transports.stderr_log import StderrLog


class PermittedTransports:
    """Transports that open only for kinds of servers that the organization may have (`mcp_kinds`).
    Others fail with DISABLED."""

    def __init__(self, inner: OpenTransport, *, switch: McpSwitch) -> None:
        self._inner = inner
        self._switch = switch

    def __call__(self, server: McpServer, log: StderrLog) -> LateTransport:
        inner = self._inner(server, log)
        return LateTransport(
            lambda: self._permitted(server, inner), inner.pace, disconnect_cancels=inner.disconnect_cancels
        )

    async def close(self) -> None:
        await self._inner.close()

    async def _permitted(self, server: McpServer, inner: LateTransport) -> LateTransport:
        if not await self._switch.permits_kind(server.organization_id, server.config):
            raise McpFailure(McpFailureKind.DISABLED, kind_refusal(server.config))
        return inner
