"""The command palette: pages and what can be made, everything that has a name, conversations and
runs by their words."""

import asyncio
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.system.pages import PageRequest
from application.threads.queries import ListConversations
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from interfaces.console.named import Entry, Named
from interfaces.console.navigation import NAVIGATION
from interfaces.console.pages import Pages, asked, in_a_line
from interfaces.console.requests import ConsoleRequest
from interfaces.console_paths import PATH

EACH = 6
"""Entries of a kind that are shown."""
NAMES_FROM = 2
SEARCHES_FROM = 3
_ALL = frozenset({"Page", "Action"})
"""Kinds that are shown in full."""
_FURTHER = (
    ("Approvals", "Page", "approvals", None),
    ("Decided approvals", "Page", "inbox/decided", None),
    ("Playground", "Page", "playground", Permission.RUNS_START),
    ("Roles", "Page", "people/roles", Permission.USERS_MANAGE),
    ("Secrets and model providers", "Page", "secrets", Permission.SECRETS_MANAGE),
    ("Identity providers", "Page", "settings/identity-providers", Permission.ORGANIZATION_MANAGE),
    ("New agent", "Action", "agents/new", Permission.AGENTS_MANAGE),
    ("New workflow", "Action", "workflows/new", Permission.WORKFLOWS_MANAGE),
    ("Add an MCP server", "Action", "servers-new", Permission.SERVERS_MANAGE),
    ("Search a registry of MCP servers", "Action", "servers-registries", Permission.SERVERS_MANAGE),
    ("Import MCP servers", "Action", "servers-import", Permission.SERVERS_MANAGE),
)
"""What the sidebar does not have: name, kind, path, permission."""


class Palette:
    """Rules:
    - Each entry is shown once, with its kind. The run that began a conversation which is found is
      not shown beside it, and of runs that were asked the same the newest is.
    - Of most kinds a few are shown.
    - What has a name is searched from `NAMES_FROM` characters on, conversations and runs from
      `SEARCHES_FROM` on.
    """

    def __init__(self, *, named: Named, list_conversations: ListConversations, list_runs: ListRuns) -> None:
        self._named = named
        self._conversations = list_conversations
        self._runs = list_runs

    async def found(self, principal: Principal, text: str) -> tuple[Entry, ...]:
        """Entries with this text in their name, in any case; without a text, the pages of the
        sidebar."""
        words = text.strip()
        if not words:
            return tuple(_pages_for(principal))
        named, searched = await asyncio.gather(self._names(principal, words), self._searched(principal, words))
        entries = (*_pages_for(principal), *_further(principal), *named)
        return (*_matching(words, entries), *searched)

    async def _names(self, principal: Principal, words: str) -> tuple[Entry, ...]:
        return () if len(words) < NAMES_FROM else await self._named.of(principal)

    async def _searched(self, principal: Principal, words: str) -> tuple[Entry, ...]:
        if len(words) < SEARCHES_FROM:
            return ()
        conversations = await self._conversations.execute(principal, search=words, page=PageRequest(limit=EACH))
        runs = await self._runs.execute(principal, RunFilter(text=words), PageRequest(limit=EACH))
        opened = {(each.thread.id, in_a_line(each.opening or "")) for each in conversations.items}
        by_title = {asked(run): run for run in reversed(runs.items) if (run.thread_id, asked(run)) not in opened}
        return (
            *(
                Entry(kind="Conversation", name=in_a_line(each.opening or ""), link=f"{PATH}/chat/{each.thread.id}")
                for each in conversations.items
            ),
            *(Entry(kind="Run", name=title, link=f"{PATH}/runs/{run.id}") for title, run in reversed(by_title.items())),
            *([_all_runs(words)] if runs.items else ()),
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


def _further(principal: Principal) -> Iterator[Entry]:
    for name, kind, below, permission in _FURTHER:
        if permission is None or principal.may(permission):
            yield Entry(kind=kind, name=name, link=f"{PATH}/{below}")


def _all_runs(words: str) -> Entry:
    return Entry(kind="Search", name=f"All runs with “{words}”", link=f"{PATH}/runs?text={quote(words)}")


def _matching(words: str, entries: Iterable[Entry]) -> Iterator[Entry]:
    """At most a few of each kind; all pages and actions."""
    counts: dict[str, int] = {}
    for each in dict.fromkeys(entries):
        if words.casefold() not in each.name.casefold():
            continue
        counts[each.kind] = counts.get(each.kind, 0) + 1
        if each.kind in _ALL or counts[each.kind] <= EACH:
            yield each
