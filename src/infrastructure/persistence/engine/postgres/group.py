"""Group commit on PostgreSQL: units of many runs in one transaction, on the event loop. While one
group commits, the next one waits. See ADR 0030."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from sqlalchemy import Connection, Dialect

from infrastructure.persistence.engine.database import SYSTEM, Job, Scope, StorageAway
from infrastructure.persistence.engine.postgres.plans import PLANS_BY_KEYS
from infrastructure.persistence.engine.postgres.roles import ORGANIZATION_SETTING, REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.engine.prepared import SendingConnection
from infrastructure.persistence.engine.staged import Staged, Stages
from infrastructure.postgres.pipeline import Pipeline, Sent

logger = logging.getLogger(__name__)

MAX_GROUP = 16
"""Units in a transaction. Each holds the event loop for some tenths of a millisecond in a stage."""
SETTINGS = {
    **PLANS_BY_KEYS,
    # How long a group waits for a row that another transaction has locked; then each unit is
    # executed alone, and only the units that need the row wait for it. Below `deadlock_timeout`, so
    # that groups of two processes that wait for each other end soon.
    "lock_timeout": "200ms",
    # When the process stops or its machine is gone, the server ends the group before the leases of
    # its runs expire, and other workers can claim them.
    "idle_in_transaction_session_timeout": "5s",
}

# The number of the transaction is known before the commit, so that a commit without an answer can
# be looked up.
_SCOPE = "SELECT CAST(pg_current_xact_id() AS text), set_config('role', $1, true), set_config($2, $3, true)"
_AWAY_S = 1.0
"""How long no connection is opened after a failed attempt. Meanwhile units are executed alone."""


class _Alone(Exception):
    """A statement needs an answer at once: the unit needs a separate transaction."""


class _GroupConnection(SendingConnection):
    """Sends statements of each unit as the role and for the organization of its scope."""

    def __init__(self, pipeline: Pipeline, dialect: Dialect) -> None:
        self.dialect = dialect
        self._pipeline = pipeline
        self._scope: Scope | None = None
        self._wanted: Scope = SYSTEM
        self._role = ""
        self.number: Sent | None = None
        """The answer with the number of the transaction."""
        self.has_sent = False

    @property
    def connection(self) -> object:
        """A driver's connection would answer at once."""
        raise _Alone("an answer is wanted before the stage is over")

    def execute(self, *statement: object) -> object:
        """Needs an answer at once."""
        raise _Alone("an answer is wanted before the stage is over")

    def act_for(self, scope: Scope) -> None:
        """The scope of the statements that follow."""
        self._wanted = scope

    def send(self, statement: str, values: list[Any]) -> Sent:
        """Send a statement."""
        if self._scope != self._wanted:
            scope = self._scope = self._wanted
            self._role = SYSTEM_ROLE if scope is SYSTEM else REQUEST_ROLE
            of = "" if scope is SYSTEM else scope
            answer = self._pipeline.send(_SCOPE, [self._role, ORGANIZATION_SETTING, of])
            self.number = self.number or answer
        self.has_sent = True
        return self._pipeline.send(statement, values, role=self._role)


@dataclass(slots=True)
class _Member:
    """A unit of a group."""

    scope: Scope
    job: Job[Any]
    begin: Callable[[Connection], Stages[Any]]


class GroupedWrites:
    """Executes waiting units in one transaction. If the group cannot commit, it is undone, and each
    unit is executed `alone`: so each fails by itself."""

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
        """Add the unit to the next group."""
        self._waiting.append(_Member(scope, job, unit.begin))
        if self._storing is None:
            self._storing = asyncio.create_task(self._store(), name="postgres-groups")

    async def stop(self) -> None:
        """Commit the waiting units, then close the connection."""
        if self._storing is not None:
            await self._storing
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            await pipeline.close()

    async def _store(self) -> None:
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(MAX_GROUP, len(self._waiting)))]
                # A caller that is cancelled later is too late.
                group = [member for member in group if not member.job.withdrawn]
                # Sorted by organization, so that few statements set the scope.
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
        except Exception as error:  # noqa: BLE001 - the unit that caused it fails again, alone
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
            # Only now: a refused unit is executed again unless its caller has gone.
            member.job.succeed(result)
            if in_doubt is not None:
                member.job.fail(_in_doubt(number, in_doubt))
            member.job.resolve()

    async def _executed(self, group: list[_Member]) -> tuple[str, list[Any]]:
        """The number of a transaction that waits to be committed, and what its units return."""
        pipeline = await self._connected()
        connection = _GroupConnection(pipeline, self._dialect)
        pipeline.command(b"BEGIN ISOLATION LEVEL READ COMMITTED")
        results: list[Any] = [None] * len(group)
        under_way: list[tuple[int, _Member, Stages[Any]]] = []
        for index, member in enumerate(group):
            # Some units send statements as they begin: locks of threads precede the first stage of
            # all units.
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
        # Without a statement there is nothing to commit, and nothing to look up.
        number = "" if connection.number is None else str(connection.number.rows()[0][0])
        return number, results

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
        """Undo the group, which releases its locks, and execute its units alone."""
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
    away = StorageAway(in_doubt=number or None)
    away.__cause__ = error
    return away
