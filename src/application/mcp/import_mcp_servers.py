"""ImportMcpServers: import the `mcpServers` file of desktop clients."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from application.mcp.client_entries import read_entry, slug_for
from application.mcp.import_outcome import ImportOutcome
from application.mcp.register_mcp_server import RegisterMcpServer, RegisterMcpServerCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonValue
from domain.mcp.kinds import KIND_NOT_PERMITTED
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportMcpServersCommand:
    """`entries` is the value of `mcpServers`: by name, `{command, args, env}` or `{type, url,
    headers}`."""

    principal: Principal
    entries: Mapping[str, JsonValue] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedEntry:
    """`name` is the name in the file; `server` is set if it was created; `remarks` are reasons or
    omissions."""

    name: str
    slug: str
    outcome: ImportOutcome
    server: McpServer | None = None
    remarks: tuple[str, ...] = ()


class ImportMcpServers:
    """Rules:
    - Admins import. Each entry becomes a server, or is skipped with a reason; an invalid entry does
      not affect the others.
    - Existing servers are not changed. Nothing is installed or started.
    - `npx` becomes kind npm; `uvx`, `uv tool run` and `pipx run` kind python; `docker run`
      and `podman run` kind oci; other commands kind custom, run in place; a URL kind http or sse.
    - Values of env and headers are stored as secrets.

    Raises: FORBIDDEN.
    """

    def __init__(self, *, register: RegisterMcpServer) -> None:
        self._register = register

    async def execute(self, command: ImportMcpServersCommand) -> tuple[ImportedEntry, ...]:
        """The outcomes in the order of the file."""
        command.principal.require(Permission.SERVERS_MANAGE)
        given: set[str] = set()
        imported = []
        for name, entry in command.entries.items():
            slug = slug_for(name, given)
            given.add(slug)
            imported.append(await self._import(command.principal, name, slug, entry))
        return tuple(imported)

    async def _import(self, principal: Principal, name: str, slug: str, entry: JsonValue) -> ImportedEntry:
        try:
            read = read_entry(slug, entry)
            server = await self._register.execute(RegisterMcpServerCommand(principal=principal, config=read.config))
        except ServiceError as error:
            if error.kind not in (ErrorKind.INVALID, ErrorKind.CONFLICT) and error.code != KIND_NOT_PERMITTED:
                raise
            faults = tuple(f"{fault.path}: {fault.message}".removeprefix(": ") for fault in error.violations)
            return ImportedEntry(name=name, slug=slug, outcome=ImportOutcome.SKIPPED, remarks=faults or (error.detail,))
        return ImportedEntry(
            name=name, slug=slug, outcome=ImportOutcome.CREATED, server=server, remarks=tuple(read.remarks)
        )
