"""FollowChanges: a client of a session is told when what it may see changes, for as long as it listens."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from application.gateway.contents.content_names import ContentKind, exposed_uri
from application.gateway.contents.content_sources import ContentSources, Sources
from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.gateway.subscriptions.check_subscription import MAX_URI, CheckSubscription, Watchable
from application.gateway.subscriptions.followers import Follower, Followers
from application.gateway.tools.toolbox import GatewayToolbox, Toolbox, scope_of
from application.mcp.news import ListKind, McpResourceNews, Release
from application.policy.canary_guard import CanaryGuard
from application.runs.ports import status_topic
from application.system.lru import LruCache
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.tools.toolset import Toolset
from application.workflows.ports import workflow_events_topic
from domain.errors import ErrorKind, ServiceError
from domain.gateway.client import GatewayClient
from domain.gateway.session import GatewaySession, ToolNames
from domain.tools.tool import Tool

_DIGESTS = 256
_TOPIC_REREAD_S = 5.0
"""How long a wake-up of a run that has ended may go unnoticed."""
_JUST_READ_S = 0.6
_OF_CONTENTS = {ListKind.RESOURCES: ContentKind.RESOURCES, ListKind.PROMPTS: ContentKind.PROMPTS}


class FollowingEnded(Exception):
    """There is nothing to follow any more: the session, its token or its client has ended, the follower lags behind, or the process
    stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowChangesCommand:
    """Which lists; and which resources, by the client's names: `uris`, or what `client` has subscribed to and will. `is_open`
    says whether the session is open still to who follows."""

    session: GatewaySession
    is_open: Callable[[], Awaitable[bool]]
    kinds: frozenset[ListKind] = frozenset(ListKind)
    uris: tuple[str, ...] = ()
    client: GatewayClient | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is to be told: lists that are others now, and resources that were updated."""

    lists: tuple[ListKind, ...] = ()
    updated: tuple[str, ...] = ()


@dataclass(slots=True)
class _Watch:
    watchable: Watchable
    release: Release


class FollowChanges:
    """Rules: a list has changed if its entries are others to this session, not if something was merely written; what servers
    say of theirs is told to whom policy lets see it; resources are watched at their servers while somebody listens, and only
    if they may be read now; nothing is told twice because it happened twice; whoever follows is let go as soon as this process
    knows that the session, its key or its client has ended."""

    def __init__(
        self,
        *,
        followers: Followers,
        toolbox: GatewayToolbox,
        sources: ContentSources,
        check: CheckSubscription,
        handshakes: ClientHandshakes,
        resources: McpResourceNews,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self.followers = followers
        self.toolbox = toolbox
        self.sources = sources
        self.check = check
        self.handshakes = handshakes
        self.resources = resources
        self.clock = clock
        self.digests = _ToolDigests()
        self._wakeups = wakeups

    @asynccontextmanager
    async def execute(self, command: FollowChangesCommand) -> AsyncIterator["Following"]:
        """Follow from entering the context until leaving it. Raises ServiceError when storage is away."""
        following = Following(self, command)
        self.followers.add(following.follower)
        ending = self._ending(command.session, following)
        try:
            await following.begin()
            yield following
        finally:
            if ending is not None:
                ending.cancel()
            self.followers.remove(following.follower)
            following.end()

    def _ending(self, session: GatewaySession, following: "Following") -> "asyncio.Task[None] | None":
        """Sessions of runs end with them, which nobody tells of as of a session."""
        if session.run_id is not None:
            topic = status_topic(session.run_id)
        elif session.wired is not None:
            topic = workflow_events_topic(session.wired.workflow_run_id)
        else:
            return None

        async def listen() -> None:
            async with self._wakeups.subscribe(topic) as subscription:
                wait_s = _TOPIC_REREAD_S
                while True:
                    was_told = await subscription.wait(wait_s)
                    # What this process read of the session just before counts for half a second.
                    wait_s = _JUST_READ_S if was_told else _TOPIC_REREAD_S
                    following.follower.is_open_unknown = following.follower.asks_again = True
                    following.follower.wake()

        return asyncio.create_task(listen(), name="gateway-follower")


class Following:
    """One that follows; `honored` are the resources of the command that it may be told of."""

    def __init__(self, parts: FollowChanges, command: FollowChangesCommand) -> None:
        self._parts = parts
        self._command = command
        self._woken = asyncio.Event()
        self.follower = Follower(command.session, self._woken.set)
        self.honored: tuple[str, ...] = ()
        self._seen: dict[ListKind, object] = {}
        self._watches: dict[str, _Watch] = {}

    async def begin(self) -> None:
        """From here on changes are told."""
        self._seen = await self._lists()
        await self._watch()
        self.honored = tuple(uri for uri in self._command.uris if uri in self._watches)

    def wake(self) -> None:
        """Let `next` return."""
        self._woken.set()

    def end(self) -> None:
        """Nothing is watched any more."""
        for watch in self._watches.values():
            watch.release()
        self._watches.clear()

    async def next(self, timeout_s: float) -> Changes:
        """What has changed since, perhaps nothing; returns when something has, when woken, or after `timeout_s`. Raises
        FollowingEnded."""
        left_s = (self._command.session.expires_at - self._parts.clock.now()).total_seconds()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(timeout_s, left_s))):
                await self._woken.wait()
        # After a quiet time all is looked at, whatever was said.
        was_quiet = not self._woken.is_set()
        self._woken.clear()
        follower = self.follower
        if follower.is_let_go:
            raise FollowingEnded
        if follower.is_open_unknown or was_quiet:
            follower.is_open_unknown = False
            await self._check_open()
            if self._command.client is not None:
                await self._watch()
        changed: set[ListKind] = set()
        if follower.asks_again or was_quiet:
            follower.asks_again = False
            changed = await self._changed_lists()
            await self._watch()
        changed |= follower.lists
        updated, follower.updated, follower.lists = follower.updated, {}, set()
        return Changes(lists=tuple(kind for kind in ListKind if kind in changed), updated=tuple(updated))

    async def _check_open(self) -> None:
        client = self._command.client
        if not self._command.session.is_open(self._parts.clock.now()) or not await self._command.is_open():
            raise FollowingEnded
        if client is not None and (await self._parts.handshakes.settings(client)).ended_at is not None:
            raise FollowingEnded

    async def _changed_lists(self) -> set[ListKind]:
        before, self._seen = self._seen, await self._lists()
        return {kind for kind, seen in self._seen.items() if seen != before.get(kind)}

    async def _lists(self) -> dict[ListKind, object]:
        """By kind something that is equal as long as the list is: for a session whose agent is gone or disabled, nothing."""
        session = self._command.session
        seen: dict[ListKind, object] = {}
        for kind in sorted(self._command.kinds):
            try:
                if kind is ListKind.TOOLS:
                    seen[kind] = self._parts.digests.of(await self._parts.toolbox.of(session))
                    continue
                servers = (await self._parts.sources.of(session, _OF_CONTENTS[kind])).servers
                self.follower.servers[kind] = frozenset(server.id for server in servers)
                seen[kind] = tuple((server.id, server.version) for server in servers)
            except ServiceError as error:
                if error.kind is not ErrorKind.FORBIDDEN:
                    raise
                seen[kind] = None
                self.follower.servers[kind] = frozenset()
        return seen

    async def _watch(self) -> None:
        """Watch what is wanted and allowed now, and nothing else."""
        wanted = self._command.uris
        if self._command.client is not None:
            wanted = (await self._parts.handshakes.settings(self._command.client)).subscriptions
        if not wanted and not self._watches:
            return
        allowed: dict[str, Watchable] = {}
        guard: CanaryGuard | None = None
        with suppress(_Closed):
            sources = await self._sources()
            guard = sources.toolbox.guard
            for uri in wanted:
                with suppress(_Closed):
                    allowed[uri] = await self._watchable(sources, uri)
        for uri, watch in list(self._watches.items()):
            if allowed.get(uri) != watch.watchable:
                self._watches.pop(uri).release()
        for uri, watchable in allowed.items():
            if uri not in self._watches:
                release = self._parts.resources.watch(
                    watchable.server, scope_of(self._command.session), watchable.uri, self._telling(watchable, guard)
                )
                self._watches[uri] = _Watch(watchable, release)

    async def _sources(self) -> Sources:
        try:
            return await self._parts.sources.of(self._command.session, ContentKind.RESOURCES)
        except ServiceError as error:
            raise _closed(error) from error

    async def _watchable(self, sources: Sources, uri: str) -> Watchable:
        try:
            return await self._parts.check.among(sources, uri)
        except ServiceError as error:
            raise _closed(error) from error

    def _telling(self, watchable: Watchable, guard: CanaryGuard | None) -> Callable[[str], None]:
        slug = watchable.server.config.slug
        is_original = self._command.session.names is ToolNames.ORIGINAL

        def tell(own: str) -> None:
            # A server names what is below the resource as it likes.
            if len(own) > MAX_URI or (guard is not None and guard.arguments({"uri": own}) is not None):
                return
            self.follower.resource_updated(own if is_original else exposed_uri(own, slug))

        return tell


class _Closed(Exception):
    """Not to be seen by this session now."""


def _closed(error: ServiceError) -> Exception:
    return _Closed() if error.kind in (ErrorKind.FORBIDDEN, ErrorKind.NOT_FOUND) else error


@dataclass(slots=True)
class _ToolDigests:
    """What a list of tools comes to, computed once for all that see the same."""

    _kept: LruCache[tuple[int, ToolNames], tuple[Toolset, bytes]] = field(default_factory=lambda: LruCache(_DIGESTS))

    def of(self, toolbox: Toolbox) -> bytes:
        """Equal for equal lists."""
        key = (id(toolbox.toolset), toolbox.names)
        kept = self._kept.get(key)
        if kept is None or kept[0] is not toolbox.toolset:
            kept = (toolbox.toolset, _digest(toolbox))
            self._kept.put(key, kept)
        return kept[1]


def _digest(toolbox: Toolbox) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, tool in toolbox.tools:
        digest.update(f"{name}\x1f{_shape(tool)}\x1e".encode("utf-8", "surrogatepass"))
    return digest.digest()


def _shape(tool: Tool) -> str:
    definition = None if tool.mcp is None else tool.mcp.definition
    if definition is not None:
        return definition.digest
    return f"{tool.description}\x1f{json.dumps(tool.parameters, sort_keys=True)}"
