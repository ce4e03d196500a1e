"""Units of work of many runs in one transaction of PostgreSQL, on the event loop: while one group is being stored, the next one
gathers. See ADR 0030."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from sqlalchemy import Connection, Dialect

from infrastructure.persistence.engine.database import SYSTEM, Job, Scope, StorageAway
from infrastructure.persistence.engine.postgres.pipeline import Pipeline, Sent
from infrastructure.persistence.engine.postgres.roles import ORGANIZATION_SETTING, REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.engine.prepared import SendingConnection
from infrastructure.persistence.engine.staged import Staged, Stages

logger = logging.getLogger(__name__)

MAX_GROUP = 16
"""Units in a transaction. Each holds the event loop for some tenths of a millisecond in a stage."""
SETTINGS = {
    # How long a group waits for a row that another transaction has locked; then its units go on alone, and those in nobody's way
    # are not held up. Below `deadlock_timeout`, so that groups of two processes that wait for each other part soon.
    "lock_timeout": "200ms",
    # A busy process is hardly ever without a group. When it stands still, or its machine is gone, the server lets go of the runs
    # in it before their leases are over, and others can take them up.
    "idle_in_transaction_session_timeout": "5s",
}

_SCOPE = "SELECT set_config('role', $1, true), set_config($2, $3, true)"
_NUMBER = "SELECT CAST(pg_current_xact_id() AS text)"
_AWAY_S = 1.0
"""For how long no connection is tried after one could not be made: alone, units find out as well."""


class _Alone(Exception):
    """Something asks for an answer at once, as a transaction of its own can have it."""


class _GroupConnection(SendingConnection):
    """Sends each unit's statements for the organization it works for, as the role of that."""

    def __init__(self, pipeline: Pipeline, dialect: Dialect) -> None:
        self.dialect = dialect
        self._pipeline = pipeline
        self._scope: Scope | None = None
        self._wanted: Scope = SYSTEM
        self._role = ""
        self.has_sent = False

    @property
    def connection(self) -> object:
        """Of the driver: not here."""
        raise self.refuse()

    def execute(self, *statement: object) -> object:
        """Not here."""
        raise self.refuse()

    def act_for(self, scope: Scope) -> None:
        """What is sent from now on is this unit's."""
        self._wanted = scope

    def send(self, statement: str, values: list[Any]) -> Sent:
        """Send a statement."""
        if self._scope != self._wanted:
            scope = self._scope = self._wanted
            self._role = SYSTEM_ROLE if scope is SYSTEM else REQUEST_ROLE
            self._pipeline.send(_SCOPE, [self._role, ORGANIZATION_SETTING, "" if scope is SYSTEM else scope])
        self.has_sent = True
        return self._pipeline.send(statement, values, role=self._role)

    def refuse(self) -> Exception:
        """What to raise where an answer is wanted at once."""
        return _Alone("an answer is wanted before the stage is over")


@dataclass(slots=True)
class _Member:
    """A unit of a group."""

    scope: Scope
    job: Job[Any]
    begin: Callable[[Connection], Stages[Any]]


class GroupedWrites:
    """What waits is one transaction; whatever keeps it from being committed has each of its units go on `alone`, so that each fails
    by itself, and is told so in one way."""

    def __init__(self, url: str, *, dialect: Dialect, alone: Callable[[Scope, Job[Any]], None]) -> None:
        self._url = url
        self._dialect = dialect
        self._alone = alone
        self._waiting: deque[_Member] = deque()
        self._storing: asyncio.Task[None] | None = None
        self._pipeline: Pipeline | None = None
        self._loop = asyncio.get_running_loop()
        self._not_before = 0.0

    def put(self, scope: Scope, job: Job[Any], unit: Staged[Any]) -> None:
        """Store the unit with those that wait."""
        self._waiting.append(_Member(scope, job, unit.begin))
        if self._storing is None:
            self._storing = asyncio.create_task(self._store(), name="postgres-groups")

    async def stop(self) -> None:
        """Store what waits, then close the connection."""
        if self._storing is not None:
            await self._storing
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            await pipeline.close()

    async def _store(self) -> None:
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(MAX_GROUP, len(self._waiting)))]
                # Whoever is cancelled from here on has been too late.
                group = [member for member in group if not member.job.withdrawn]
                # Units of one organization stand together, so that few statements say for whom.
                group.sort(key=lambda member: "" if member.scope is SYSTEM else member.scope)
                if group:
                    await self._store_group(group)
        finally:
            self._storing = None

    async def _store_group(self, group: list[_Member]) -> None:
        try:
            number, results = await self._executed(group)
            pipeline = cast(Pipeline, self._pipeline)
            pipeline.command(b"COMMIT")
        except Exception as error:  # noqa: BLE001 - whoever is to blame meets it again, alone
            await self._give_up(group, error)
            return
        in_doubt: Exception | None = None
        try:
            await pipeline.answered()
        except Exception as error:  # noqa: BLE001 - it goes to the units' callers
            if not pipeline.lost:  # the server has refused
                await self._give_up(group, error)
                return
            await self._discard()
            in_doubt = error
        for member, result in zip(group, results, strict=True):
            # Not before: what the server refused is executed anew, unless its caller has gone.
            member.job.succeed(result)
            if in_doubt is not None:
                member.job.fail(_in_doubt(number, in_doubt))
            member.job.resolve()

    async def _executed(self, group: list[_Member]) -> tuple[str, list[Any]]:
        """The number of a transaction that waits to be committed, and what its units return."""
        pipeline = await self._connected()
        connection = _GroupConnection(pipeline, self._dialect)
        pipeline.command(b"BEGIN")
        # Known before the commit, so that a commit without an answer can be looked up.
        number = pipeline.send(_NUMBER, [])
        results: list[Any] = [None] * len(group)
        under_way: list[tuple[int, _Member, Stages[Any]]] = []
        for index, member in enumerate(group):
            # Some ask as they begin: before the first stage of any other, as locks of threads must be.
            connection.act_for(member.scope)
            under_way.append((index, member, member.begin(cast(Connection, connection))))
        while under_way:
            still: list[tuple[int, _Member, Stages[Any]]] = []
            for index, member, stages in under_way:
                connection.act_for(member.scope)
                try:
                    next(stages)
                except StopIteration as end:
                    results[index] = end.value
                else:
                    still.append((index, member, stages))
            under_way = still
            if connection.has_sent:
                connection.has_sent = False
                await pipeline.answered()
        if not number.is_there:
            await pipeline.answered()
        return str(number.rows()[0][0]), results

    async def _connected(self) -> Pipeline:
        if self._pipeline is not None and self._pipeline.lost:
            await self._discard()
        if self._pipeline is None:
            if self._loop.time() < self._not_before:
                raise _Alone("the database was away just now")
            try:
                self._pipeline = await Pipeline.open(self._url, SETTINGS)
            except psycopg.Error:
                self._not_before = self._loop.time() + _AWAY_S
                raise
        return self._pipeline

    async def _give_up(self, group: list[_Member], error: Exception) -> None:
        """Undo the group, as what it has locked must not stand in its units' way, and let them go on alone."""
        logger.debug("a group of units is undone", exc_info=error)
        if self._pipeline is not None:
            try:
                await self._pipeline.undone()
            except Exception:  # noqa: BLE001 - the server undoes it once the connection is gone
                await self._discard()
        for member in group:
            self._alone(member.scope, member.job)

    async def _discard(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            await pipeline.close()


def _in_doubt(number: str, error: Exception) -> Exception:
    away = StorageAway(in_doubt=number)
    away.__cause__ = error
    return away
