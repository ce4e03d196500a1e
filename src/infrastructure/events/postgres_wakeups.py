"""Wake-ups between processes by PostgreSQL's LISTEN and NOTIFY: the `Wakeups` port for several
processes.

Topics are sent after the commit, in batches, on a separate connection: a NOTIFY within a
transaction makes commits wait for each other. A lost connection loses notifications. After
reconnecting, every listener is woken and reads again, so it misses nothing.

Notifications of changed rows arrive the same way: triggers send them in the changing transactions.
Heartbeats that each process sends to itself arrive this way too; see `RowNotifications`.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress

import psycopg
from psycopg import AsyncConnection, Notify, sql

from domain.ids import OrganizationId
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.events.wakeups import InProcessWakeups, Listener
from infrastructure.postgres.pipeline import Pipeline

logger = logging.getLogger(__name__)

CHANNEL = "dragoman_wakeups"
ROWS_CHANNEL = "dragoman_rows"
"""The channel of the tables' triggers. A payload is the table and the organization."""
BEAT_EVERY_S = 0.4
SILENCE_S = 3.0
"""A listening connection without a heartbeat for this time is replaced."""
MAX_PAYLOAD_BYTES = 7_900
"""Below NOTIFY's limit of 8000 bytes (PostgreSQL, NOTIFY)."""
_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 5.0
_STOP_S = 2.0
_NOTIFY = "SELECT pg_notify($1, $2)"


class PostgresWakeups:
    """Listeners of this process, woken by every process on the same database.

    `process` names this process: it wakes its own listeners directly, and ignores its own
    notifications. `rows` gets the notifications of changed rows.
    """

    def __init__(self, url: str, *, process: str, rows: RowNotifications) -> None:
        self._url = url
        self._process = process
        self._rows = rows
        # A separate channel per process, so that heartbeats do not wake other processes.
        self._beats = f"dragoman_beat_{process}"
        self._local = InProcessWakeups()
        self._ears: dict[str, Callable[[str], None]] = {}
        self._waiting: dict[str, None] = {}
        self._something_to_send = asyncio.Event()
        self._listening = asyncio.Event()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._stopping = False

    async def start(self) -> None:
        """Start listening and sending. Returns when both work, or after a few seconds if the
        database is unavailable; connecting is retried."""
        self._tasks = (
            asyncio.create_task(self._keep("listening", self._listen), name="wakeups-listen"),
            asyncio.create_task(self._keep("sending", self._send), name="wakeups-send"),
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_RETRY_S):
                await self._listening.wait()

    async def stop(self) -> None:
        """Send the waiting topics, in bounded time, then close the connections."""
        self._stopping = True
        self._something_to_send.set()
        if self._tasks:
            await asyncio.wait(self._tasks[1:], timeout=_STOP_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = ()

    def subscribe(self, *topics: str) -> AbstractAsyncContextManager[Listener]:
        return self._local.subscribe(*topics)

    def subscribe_prefix(self, word: str, hear: Callable[[str], None]) -> None:
        """Call `hear` with each topic that another process wakes and that begins with `word` and a
        colon. Nothing is received while the connection is lost."""
        self._ears[word] = hear

    def wake(self, *topics: str) -> None:
        """Wake all listeners of the topics: here at once, in other processes soon."""
        self._local.wake(*topics)
        self._waiting.update(dict.fromkeys(topics))
        self._something_to_send.set()

    def wake_here(self, *topics: str) -> None:
        """Wake the listeners of this process alone."""
        self._local.wake(*topics)

    async def _keep(self, doing: str, work: Callable[[AsyncConnection], Awaitable[None]]) -> None:
        """Do the work on a connection, and again on a new one when it is lost."""
        pause_s = _FIRST_RETRY_S
        while not self._stopping:
            try:
                async with await AsyncConnection.connect(self._url, autocommit=True) as connection:
                    pause_s = _FIRST_RETRY_S
                    await work(connection)
            except (psycopg.Error, OSError) as error:
                logger.warning("wake-ups: %s interrupted (%s); reconnecting", doing, type(error).__name__)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _LAST_RETRY_S)

    async def _listen(self, connection: AsyncConnection) -> None:
        for channel in (CHANNEL, ROWS_CHANNEL, self._beats):
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        # Notifications may have been missed before this connection listened.
        self._rows.interrupted()
        self._local.wake_all()
        self._listening.set()
        heard = True
        while heard:
            heard = False
            async for notification in connection.notifies(timeout=SILENCE_S):
                heard = True
                self._hear(notification)
        logger.warning("wake-ups: no heartbeat received for %s s; reconnecting", SILENCE_S)

    def _hear(self, notification: Notify) -> None:
        if notification.channel == self._beats:
            self._rows.heard(notification.payload)
        elif notification.channel == ROWS_CHANNEL:
            table, _, organization_id = notification.payload.partition(" ")
            self._rows.changed(table, OrganizationId(organization_id))
        else:
            sender, _, topics = notification.payload.partition(" ")
            if sender == self._process:
                return
            for topic in topics.split(" "):
                if (hear := self._ears.get(topic.partition(":")[0])) is not None:
                    hear(topic)
                else:
                    self._local.wake(topic)

    async def _send(self, connection: AsyncConnection) -> None:
        # It takes a fifth of what a cursor for each notification does.
        pipeline = Pipeline(connection)

        async def notify(channel: str, payload: str) -> None:
            pipeline.send(_NOTIFY, [channel, payload])
            await pipeline.answered()

        try:
            await self._send_with(notify)
        finally:
            await pipeline.close()

    async def _send_with(self, notify: Callable[[str, str], Awaitable[None]]) -> None:
        beat_at = time.monotonic()
        while True:
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + BEAT_EVERY_S
                await notify(self._beats, self._rows.beat())
            if not self._waiting:
                if self._stopping:
                    return
                self._something_to_send.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, beat_at - time.monotonic())):
                        await self._something_to_send.wait()
                continue
            # Removed before sending, so that a topic that is woken meanwhile is sent again.
            topics, self._waiting = self._waiting, {}
            try:
                for payload in self._payloads(topics):
                    await notify(CHANNEL, payload)
            except BaseException:
                self._waiting = topics | self._waiting
                raise

    def _payloads(self, topics: Iterable[str]) -> list[str]:
        """The topics in as few messages as possible: the sender, then topics, separated by
        spaces."""
        payloads = [self._process]
        for topic in topics:
            if len(payloads[-1].encode()) + len(topic.encode()) + 1 > MAX_PAYLOAD_BYTES:
                payloads.append(self._process)
            payloads[-1] += f" {topic}"
        return payloads
