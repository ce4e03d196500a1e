"""ImportMcpServers: take over the servers of the `mcpServers` file that desktop clients share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from application.mcp.client_entries import read_entry, slug_for
from application.mcp.register_mcp_server import RegisterMcpServer, RegisterMcpServerCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.json_value import JsonValue
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportMcpServersCommand:
    """`entries` is the value of `mcpServers`: an object by name, of which each is `{command, args, env}` or `{type, url,
    headers}`."""

    principal: Principal
    entries: Mapping[str, JsonValue] = field(repr=False)


class ImportOutcome(StrEnum):
    """What became of an entry."""

    CREATED = "created"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedEntry:
    """`name` as in the file; `server` is there if it was created; `remarks` say why not, or what was left out."""

    name: str
    slug: str
    outcome: ImportOutcome
    server: McpServer | None = None
    remarks: tuple[str, ...] = ()


class ImportMcpServers:
    """Admins import. Each entry becomes a server of its own, or is skipped with a reason; one that cannot be used does not
    keep out the others, and no server that is there already is changed.

    `npx` becomes kind npm; `uvx`, `uv tool run` and `pipx run` kind python; any other command kind custom, run in place;
    a URL kind http or sse. Values of env and headers are stored as secrets. Nothing is installed or started by it.
    """

    def __init__(self, *, register: RegisterMcpServer) -> None:
        self._register = register

    async def execute(self, command: ImportMcpServersCommand) -> tuple[ImportedEntry, ...]:
        """What became of each entry, in the order of the file. Raises FORBIDDEN."""
        command.principal.require(Role.ADMIN)
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
            if error.kind not in (ErrorKind.INVALID, ErrorKind.CONFLICT):
                raise
            faults = tuple(f"{fault.path}: {fault.message}".removeprefix(": ") for fault in error.violations)
            return ImportedEntry(name=name, slug=slug, outcome=ImportOutcome.SKIPPED, remarks=faults or (error.detail,))
        return ImportedEntry(
            name=name, slug=slug, outcome=ImportOutcome.CREATED, server=server, remarks=tuple(read.remarks)
        )
