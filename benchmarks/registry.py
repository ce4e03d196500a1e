"""What the registry of MCP tools costs: the toolset of a run from warm catalogs, lookup by name,
memory per tool.

`python -m benchmarks.registry` prints the figures; nothing here talks to a server.
"""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Iterable

from application.mcp.catalog_reader import CatalogReader
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope
from application.tools.toolset import Toolset
from application.tools.toolset_builder import ToolsetBuilder
from domain.agents.agent import AgentConfig
from domain.ids import McpServerId
from domain.mcp.catalog import McpToolDefinition
from tests.builders import ORG, a_catalog, a_server, an_agent, an_organization
from tests.circumstances import circumstances
from tests.doubles.mcp_connections import InMemoryMcpConnections
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds

SERVERS = 10
SIZES = (10, 100, 1_000, 10_000)
LOOKUPS = 100_000
ROUNDS = 50
SCOPE = ConnectionScope(organization_id=ORG)


class Registry:
    """Ten listed servers with `tools` tools in all."""

    def __init__(self, tools: int) -> None:
        state, clock = InMemoryState(), FixedClock()
        state.organizations[ORG] = an_organization()
        connections, catalogs = InMemoryMcpConnections(), InMemoryMcpCatalogStore(state)
        for number in range(SERVERS):
            server_id = McpServerId(f"mcp_{number}")
            state.servers[server_id] = a_server(server_id, slug=f"server-{number}")
            state.catalogs[server_id] = a_catalog(server_id, tools=_definitions(tools // SERVERS))
        self.config = an_agent(mcp_servers=tuple(f"server-{number}" for number in range(SERVERS))).config
        self.catalog = ToolsetBuilder(
            native_tools={},
            displayable_tools={},
            servers=InMemoryMcpServerStore(state),
            catalogs=CatalogReader(
                catalogs=catalogs,
                catalog_updater=CatalogUpdater(
                    catalogs=catalogs,
                    connections=connections,
                    organizations=InMemoryOrganizationStore(state),
                    clock=clock,
                    ids=SequentialIds(),
                ),
                clock=clock,
            ),
            connections=connections,
            switch=McpSwitch(enabled=True, organizations=InMemoryOrganizationStore(state)),
            organizations=InMemoryOrganizationStore(state),
            circumstances=circumstances(state, clock),
        )

    async def toolset(self, config: AgentConfig | None = None) -> Toolset:
        """What a run starts with."""
        return await self.catalog.toolset(config or self.config, SCOPE)


def _definitions(count: int) -> Iterable[McpToolDefinition]:
    return [
        McpToolDefinition(
            name=f"tool_{number:05}",
            description=f"Does the thing of number {number}, and says what came of it.",
            input_schema={
                "type": "object",
                "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["path"],
            },
        )
        for number in range(count)
    ]


async def measure(tools: int) -> str:
    """A line of figures for so many tools on ten servers."""
    gc.collect()
    tracemalloc.start()
    registry = Registry(tools)
    listed, _ = tracemalloc.get_traced_memory()
    await registry.toolset()
    built, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    registry = Registry(tools)
    began = time.perf_counter()
    toolset = await registry.toolset()
    _ = toolset.definition_bytes, toolset.find("")
    first_ms = (time.perf_counter() - began) * 1000
    began = time.perf_counter()
    for _ in range(ROUNDS):
        toolset = await registry.toolset()
        _ = toolset.definition_bytes, toolset.find("")
    warm_ms = (time.perf_counter() - began) * 1000 / ROUNDS
    names = [tool.name for tool in toolset.tools]
    began = time.perf_counter()
    for number in range(LOOKUPS):
        toolset.find(names[number % len(names)])
    lookup_ns = (time.perf_counter() - began) * 1e9 / LOOKUPS
    return (
        f"{tools:>6} tools on {SERVERS} servers   first toolset {first_ms:8.2f} ms   warm {warm_ms:6.3f} ms   "
        f"lookup {lookup_ns:4.0f} ns   {listed / tools:6.0f} bytes per listed tool, "
        f"{(built - listed) / tools:5.0f} more in use"
    )


async def main() -> None:
    """All sizes."""
    for tools in SIZES:
        print(await measure(tools))


if __name__ == "__main__":
    asyncio.run(main())
