"""The command palette: pages, agents, MCP servers, workflows, schedules, conversations and runs by name."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from application.agents.queries import ListAgents
from application.mcp.queries import ListMcpServers
from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.schedules.queries import ListSchedules
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.threads.queries import ListConversations
from application.workflows.queries import ListWorkflows
from domain.identity.api_key import Principal
from interfaces.console.navigation import NAVIGATION
from interfaces.console.pages import Pages, asked, in_a_line
from interfaces.console.requests import ConsoleRequest
from interfaces.console_paths import PATH

EACH = 6
"""Entries of a kind that are shown."""
SEARCHES_FROM = 3
_NAMED = PageRequest(limit=MAX_PAGE_SIZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`keys` lead there, too."""

    kind: str
    name: str
    link: str
    keys: str = ""


class Palette:
    """Finds what has a name. Agents, servers, workflows and schedules are searched among the newest of each."""

    def __init__(
        self,
        *,
        list_agents: ListAgents,
        list_mcp_servers: ListMcpServers,
        list_workflows: ListWorkflows,
        list_schedules: ListSchedules,
        list_conversations: ListConversations,
        list_runs: ListRuns,
    ) -> None:
        self._agents = list_agents
        self._servers = list_mcp_servers
        self._workflows = list_workflows
        self._schedules = list_schedules
        self._conversations = list_conversations
        self._runs = list_runs

    async def found(self, principal: Principal, text: str) -> tuple[Entry, ...]:
        """Entries with this text in their name, in any case; without a text, the pages. Conversations and runs are
        searched from `SEARCHES_FROM` characters on."""
        words = text.strip()
        pages = _matching(words, _pages_for(principal))
        if not words:
            return tuple(pages)
        agents, servers, workflows, schedules, searched = await asyncio.gather(
            self._agents.execute(principal=principal, page=_NAMED),
            self._servers.execute(principal=principal, page=_NAMED),
            self._workflows.execute(principal=principal, page=_NAMED),
            self._schedules.execute(principal, _NAMED),
            self._searched(principal, words),
        )
        named = (
            *(Entry(kind="Agent", name=each.config.name, link=f"{PATH}/agents/{each.id}") for each in agents.items),
            *(
                Entry(kind="MCP server", name=each.config.slug, link=f"{PATH}/servers/{each.config.slug}")
                for each in servers.items
            ),
            *(
                Entry(kind="Workflow", name=each.definition.name, link=f"{PATH}/workflows/{each.id}")
                for each in workflows.items
            ),
            *(Entry(kind="Schedule", name=each.name, link=f"{PATH}/schedules") for each in schedules.items),
        )
        return (*pages, *_matching(words, named), *searched)

    async def _searched(self, principal: Principal, words: str) -> tuple[Entry, ...]:
        if len(words) < SEARCHES_FROM:
            return ()
        conversations = await self._conversations.execute(principal, search=words, page=PageRequest(limit=EACH))
        runs = await self._runs.execute(principal, RunFilter(text=words), PageRequest(limit=EACH))
        return (
            *(
                Entry(kind="Conversation", name=in_a_line(each.opening or ""), link=f"{PATH}/chat/{each.thread.id}")
                for each in conversations.items
            ),
            *(Entry(kind="Run", name=asked(run), link=f"{PATH}/runs/{run.id}") for run in runs.items),
        )


@get("/parts/palette")
async def show_palette(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    palette: NamedDependency[Palette],
    find: FromQuery[str] = "",
) -> Response[str]:
    return pages.show(
        request, "parts/palette.html", {"found": await palette.found(request.principal, find), "find": find}
    )


def _pages_for(principal: Principal) -> Iterator[Entry]:
    for _, entries in NAVIGATION:
        for each in entries:
            if each.is_for(principal):
                yield Entry(kind="Page", name=each.name, link=each.path, keys=f"g {each.key}")
    yield Entry(kind="Help", name="Keyboard shortcuts", link="#keys-help", keys="?")


def _matching(words: str, entries: Iterable[Entry]) -> Iterator[Entry]:
    """At most a few of each kind; all pages."""
    counts: dict[str, int] = {}
    for each in entries:
        if words.casefold() not in each.name.casefold():
            continue
        counts[each.kind] = counts.get(each.kind, 0) + 1
        if each.kind == "Page" or counts[each.kind] <= EACH:
            yield each
