"""AddRegistryServer: register a server as an entry of an MCP registry describes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from application.mcp.client_entries import slug_for
from application.mcp.register_mcp_server import RegisterMcpServer, RegisterMcpServerCommand
from application.mcp.registries import LATEST, GetRegistryEntry
from domain.identity.api_key import Principal
from domain.mcp.entry_origin import EntryOrigin
from domain.mcp.server import McpServer
from domain.secrets.secret import SecretValue


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRegistryServerCommand:
    """`option` is the number of one of the entry's options; `inputs` are the values of its inputs
    by their names."""

    principal: Principal
    registry: str
    name: str
    version: str = LATEST
    option: int = 0
    slug: str | None = None
    inputs: Mapping[str, SecretValue] = field(default_factory=dict, repr=False)


class AddRegistryServer:
    """Rules:
    - Admins add servers, by the rules of `RegisterMcpServer`. Nothing is installed or started.
    - Required inputs without a default must be given; values of environment and headers are stored
      as secrets.
    - The server keeps the registry, name and version of the entry.
    - Without a slug, the server is named after the last part of the entry's name.

    Raises: as `GetRegistryEntry` and `RegisterMcpServer`, INVALID `registry_inputs_invalid`,
    `registry_option_invalid`.
    """

    def __init__(self, *, entries: GetRegistryEntry, register: RegisterMcpServer) -> None:
        self._entries = entries
        self._register = register

    async def execute(self, command: AddRegistryServerCommand) -> McpServer:
        entry = await self._entries.execute(command.principal, command.registry, command.name, command.version)
        slug = command.slug or slug_for(entry.name.rpartition("/")[2], set())
        config = entry.option(command.option).config(slug, command.inputs)
        origin = EntryOrigin(registry=command.registry, name=entry.name, version=entry.version)
        config = replace(config, registry_entry=str(origin))
        return await self._register.execute(RegisterMcpServerCommand(principal=command.principal, config=config))
