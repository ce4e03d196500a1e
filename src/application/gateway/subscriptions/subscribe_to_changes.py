"""SubscribeToChanges: notifies a client of a session about changes while it listens."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from application.gateway.contents.content_sources import ContentSources
from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.gateway.subscriptions.check_subscription import CheckSubscription
from application.gateway.subscriptions.list_states import ListState, ListStates
from application.gateway.subscriptions.subscribers import Subscriber, Subscribers
from application.gateway.subscriptions.watched_resources import WatchedResources
from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.mcp.news import ListKind, McpResourceNews
from application.runs.ports import status_topic
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.workflows.ports import workflow_events_topic
from domain.gateway.client import GatewayClient
from domain.gateway.session import GatewaySession

_TOPIC_REREAD_S = 5.0
"""Rereads after this time in case the wake-up of an ended run was lost."""
_JUST_READ_S = 0.6


class SubscriptionEnded(Exception):
    """The subscription has ended: the session, its token or its client has ended, the subscriber is
    too slow, or the process stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeToChangesCommand:
    """The lists, and the resources by the client's names: `uris`, or the subscriptions of `client`.
    `is_open` says whether the subscriber's session is still open."""

    session: GatewaySession
    is_open: Callable[[], Awaitable[bool]]
    kinds: frozenset[ListKind] = frozenset(ListKind)
    uris: tuple[str, ...] = ()
    client: GatewayClient | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changed lists and updated resources."""

    lists: tuple[ListKind, ...] = ()
    updated: tuple[str, ...] = ()


class SubscribeToChanges:
    """Rules:
    - A list has changed if this session sees other entries, not if something was only written.
    - Servers' list notifications reach sessions whose policy allows these lists.
    - Resources are watched at their servers while a client listens, and only if it may read them
      now.
    - Repeated changes before a notification are reported once.
    - A subscriber is dropped once this process knows that the session, its key or its client has
      ended.
    """

    def __init__(
        self,
        *,
        subscribers: Subscribers,
        toolsets: GatewayToolsets,
        sources: ContentSources,
        check: CheckSubscription,
        handshakes: ClientHandshakes,
        resources: McpResourceNews,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._subscribers = subscribers
        self._lists = ListStates(toolsets=toolsets, sources=sources)
        self._sources = sources
        self._check = check
        self._handshakes = handshakes
        self._resources = resources
        self._clock = clock
        self._wakeups = wakeups

    @asynccontextmanager
    async def execute(self, command: SubscribeToChangesCommand) -> AsyncIterator["ChangeSubscription"]:
        """Subscribe until the context ends. Raises UNAVAILABLE `storage_unavailable`."""
        woken = asyncio.Event()
        subscriber = Subscriber(command.session, woken.set)
        watched = WatchedResources(
            command.session,
            subscriber.resource_updated,
            sources=self._sources,
            check=self._check,
            resources=self._resources,
        )
        following = ChangeSubscription(
            command,
            subscriber,
            woken,
            lists=self._lists,
            watched=watched,
            handshakes=self._handshakes,
            clock=self._clock,
        )
        self._subscribers.add(subscriber)
        ending = self._ending(command.session, subscriber)
        try:
            await following.begin()
            yield following
        finally:
            if ending is not None:
                ending.cancel()
            self._subscribers.remove(subscriber)
            watched.release()

    def _ending(self, session: GatewaySession, subscriber: Subscriber) -> "asyncio.Task[None] | None":
        """Watch the session's run: a session that ends with it causes no separate notification."""
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
                    # The session's cache entry may be half a second old.
                    wait_s = _JUST_READ_S if was_told else _TOPIC_REREAD_S
                    subscriber.is_open_unknown = subscriber.asks_again = True
                    subscriber.wake()

        return asyncio.create_task(listen(), name="gateway-subscriber")


class ChangeSubscription:
    """One subscription. `honored` are the command's resources that the client may watch."""

    def __init__(
        self,
        command: SubscribeToChangesCommand,
        subscriber: Subscriber,
        woken: asyncio.Event,
        *,
        lists: ListStates,
        watched: WatchedResources,
        handshakes: ClientHandshakes,
        clock: Clock,
    ) -> None:
        self.honored: tuple[str, ...] = ()
        self._command = command
        self.subscriber = subscriber
        self._woken = woken
        self._lists = lists
        self._watched = watched
        self._handshakes = handshakes
        self._clock = clock
        self._seen: Mapping[ListKind, ListState] = {}

    async def begin(self) -> None:
        """Read the present state; changes from now on are reported."""
        self._seen = await self._states()
        await self._watch()
        self.honored = tuple(uri for uri in self._command.uris if uri in self._watched)

    def wake(self) -> None:
        self._woken.set()

    async def next(self, timeout_s: float) -> Changes:
        """Changes since the last call, perhaps none. Returns after a change, a wake-up or
        `timeout_s`. Raises SubscriptionEnded."""
        left_s = (self._command.session.expires_at - self._clock.now()).total_seconds()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(timeout_s, left_s))):
                await self._woken.wait()
        # After a quiet time, everything is checked.
        was_quiet = not self._woken.is_set()
        self._woken.clear()
        subscriber = self.subscriber
        if subscriber.is_dropped:
            raise SubscriptionEnded
        if subscriber.is_open_unknown or was_quiet:
            subscriber.is_open_unknown = False
            await self._check_open()
            if self._command.client is not None:
                await self._watch()
        changed: set[ListKind] = set()
        if subscriber.asks_again or was_quiet:
            subscriber.asks_again = False
            changed = await self._changed_lists()
            await self._watch()
        changed |= subscriber.lists
        updated, subscriber.updated, subscriber.lists = subscriber.updated, {}, set()
        return Changes(lists=tuple(kind for kind in ListKind if kind in changed), updated=tuple(updated))

    async def _check_open(self) -> None:
        client = self._command.client
        if not self._command.session.is_open(self._clock.now()) or not await self._command.is_open():
            raise SubscriptionEnded
        if client is not None and (await self._handshakes.settings(client)).ended_at is not None:
            raise SubscriptionEnded

    async def _changed_lists(self) -> set[ListKind]:
        before, self._seen = self._seen, await self._states()
        return {kind for kind, state in self._seen.items() if state.entries != before[kind].entries}

    async def _states(self) -> Mapping[ListKind, ListState]:
        states = await self._lists.of(self._command.session, self._command.kinds)
        self.subscriber.servers = {kind: state.servers for kind, state in states.items()}
        return states

    async def _watch(self) -> None:
        wanted, client = self._command.uris, self._command.client
        if client is not None:
            wanted = (await self._handshakes.settings(client)).subscriptions
        await self._watched.watch(wanted)
