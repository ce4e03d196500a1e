"""PreviewMcpImport: show the result of importing a desktop client's file, without importing."""

from dataclasses import dataclass

from application.mcp.client_entries import read_entry, slug_for
from application.mcp.import_mcp_servers import ImportMcpServersCommand
from application.mcp.literal_secrets import require_no_literal_secrets
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import McpServerStore
from application.mcp.server_address import require_reachable
from application.system.ports import OutboundPolicy
from domain.errors import ErrorKind, ServiceError, conflict
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonValue
from domain.mcp.kinds import KIND_NOT_PERMITTED
from domain.mcp.server import McpServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedEntry:
    """`config` is the server to create, or None with the reasons in `remarks`. `secrets` are the
    values to be stored encrypted: `env.TOKEN`, `headers.Authorization`."""

    name: str
    slug: str
    config: McpServerConfig | None = None
    remarks: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


class PreviewMcpImport:
    """Admins preview imports, by the rules of `ImportMcpServers`. Nothing is stored. Raises:
    FORBIDDEN."""

    def __init__(self, *, servers: McpServerStore, switch: McpSwitch, outbound: OutboundPolicy) -> None:
        self._servers = servers
        self._switch = switch
        self._outbound = outbound

    async def execute(self, command: ImportMcpServersCommand) -> tuple[PreviewedEntry, ...]:
        """The outcomes in the order of the file."""
        command.principal.require(Permission.SERVERS_MANAGE)
        given: set[str] = set()
        previewed = []
        for name, entry in command.entries.items():
            slug = slug_for(name, given)
            given.add(slug)
            previewed.append(await self._preview(command.principal, name, slug, entry))
        return tuple(previewed)

    async def _preview(self, principal: Principal, name: str, slug: str, entry: JsonValue) -> PreviewedEntry:
        try:
            read = read_entry(slug, entry)
            await self._switch.require_kind(principal.organization_id, read.config)
            require_reachable(self._outbound, read.config)
            require_no_literal_secrets(read.config)
            await self._require_free(principal, slug)
        except ServiceError as error:
            if error.kind not in (ErrorKind.INVALID, ErrorKind.CONFLICT) and error.code != KIND_NOT_PERMITTED:
                raise
            faults = tuple(f"{fault.path}: {fault.message}".removeprefix(": ") for fault in error.violations)
            return PreviewedEntry(name=name, slug=slug, remarks=faults or (error.detail,))
        secrets = (*(f"env.{key}" for key in read.config.env), *(f"headers.{key}" for key in read.config.headers))
        return PreviewedEntry(name=name, slug=slug, config=read.config, remarks=tuple(read.remarks), secrets=secrets)

    async def _require_free(self, principal: Principal, slug: str) -> None:
        found = await self._servers.get(principal.organization_id, slug)
        if found is not None and found.config.slug == slug:
            raise conflict("mcp_server_slug_taken", f"There is already an MCP server {slug!r}.")
