"""A month of audit entries or gateway calls on PostgreSQL is removed with its partition, and the
audit chains still verify."""

import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from application.audit.expired_chain import ExpiredChain
from application.audit.remove_audit_month import RemoveAuditMonth
from application.audit.seal_audit import SealAudit
from application.audit.verify_audit_chain import ChainReport, VerifyAuditChain
from application.retention.archive_calls import ArchiveCalls
from application.retention.maintain_months import MaintainMonths
from application.retention.ports import ArchivedEntry, RunArchive
from application.retention.verify_run_archive import VerifyRunArchive
from domain.audit.event import AuditAction
from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.identity.role import Role
from domain.ids import AuditEventId, OrganizationId, ThreadId, ToolCallId, derived_id
from domain.tools.result import ToolResult
from infrastructure.archive.checked_run_files import CheckedRunFiles
from infrastructure.archive.run_files import RunFiles
from infrastructure.persistence.audit.months import SqlAuditMonths
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.gateway.removable_calls import SqlRemovableCalls
from infrastructure.persistence.retention.months import SqlMonthlyTables
from infrastructure.persistence.retention.run_months import SqlRunMonths
from infrastructure.runtime.system import RandomIds, SystemClock
from tests.builders import ORG, OTHER_ORG, a_thread, an_agent, an_audit_event, an_organization
from tests.contract.sql_legs import opened
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases
from tests.doubles.audit_chain import GivenSealKeys
from tests.gateway_builders import a_gateway_call, a_gateway_session
from tests.integration.persistence.monthly import (
    an_id,
    moment_in,
    months_before,
    months_of,
    name_of,
    partition_of,
    with_ended_months,
)
from tests.refusals import refused
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("K5", "C5", "E7")

KEYS = GivenSealKeys(b"k" * 32)
OLDEST, NEXT, LAST = months_before(3)
DAY = timedelta(days=1)


@dataclass(slots=True)
class Trails:
    """Two organizations on a database with three ended months."""

    url: str
    database: Database
    stores: Stores

    async def record(self, at: datetime, *, id_at: datetime | None = None, of: OrganizationId = ORG) -> AuditEventId:
        """An entry of that moment, in the month of its id."""
        return await self.record_as(AuditEventId(an_id("aud", id_at or at)), at, of)

    async def record_as(self, entry: AuditEventId, at: datetime, of: OrganizationId = ORG) -> AuditEventId:
        await self.stores.audit.record(replace(an_audit_event(at=at, organization_id=of), id=entry))
        return entry

    async def keep(self, days: int | None, *organizations: OrganizationId) -> None:
        for one in organizations:
            found = await self.stores.organizations.get(one)
            assert found is not None
            changed = replace(found, retention_days=days, version=found.version + 1)
            await self.stores.organizations.save(changed, expected_version=found.version, audit=())

    async def seal(self) -> None:
        await SealAudit(seals=self.stores.audit_seals, keys=KEYS, clock=SystemClock()).sweep()

    async def maintain(self, archive: RunArchive | None = None) -> None:
        months = SqlAuditMonths(database=self.database)
        tables = SqlMonthlyTables(database=self.database)
        calls = SqlRemovableCalls(database=self.database)
        await MaintainMonths(
            organizations=self.stores.organizations,
            tables=tables,
            archive_calls=None
            if archive is None
            else ArchiveCalls(archive=archive, calls=calls, tables=tables, page=3),
            run_months=SqlRunMonths(database=self.database),
            audit_months=months,
            remove_audit_month=RemoveAuditMonth(
                months=months,
                expired=ExpiredChain(chain=self.stores.audit_chain, archive=None),
                keys=KEYS,
                clock=SystemClock(),
                ids=RandomIds(),
            ),
            clock=SystemClock(),
        ).execute()

    async def report(self, of: OrganizationId = ORG) -> ChainReport:
        sealing = SealAudit(seals=self.stores.audit_seals, keys=KEYS, clock=SystemClock())
        verify = VerifyAuditChain(
            chain=self.stores.audit_chain,
            entries=self.stores.audit_seals,
            sealing=sealing,
            keys=KEYS,
            clock=SystemClock(),
        )
        await sealing.sweep()
        return await verify.execute(a_principal(Role.VIEWER, organization_id=of))

    async def entries(self, of: OrganizationId = ORG) -> set[str]:
        """Ids of the entries that are left, without those of removals."""
        statement = text("SELECT id FROM audit_event WHERE organization_id = :of AND action <> :removal")
        wanted = {"of": of, "removal": AuditAction.AUDIT_PRUNED.value}
        found = await self.database.read(lambda one: one.execute(statement, wanted).scalars().all(), scope=SYSTEM)
        return set(found)

    def months(self, table: str = "audit_event") -> set[str]:
        return set(months_of(self.url, table)) & {name_of(month) for month in (OLDEST, NEXT, LAST)}


@pytest.fixture
async def trails(postgres_databases: PostgresDatabases) -> AsyncIterator[Trails]:
    with with_ended_months(postgres_databases, 3) as url:
        database = PostgresDatabase(url, connections=3)
        async with opened(database, an_organization(ORG), an_organization(OTHER_ORG)) as stores:
            yield Trails(url, database, stores)


async def test_a_month_goes_with_its_partition_and_both_chains_continue_behind_it(trails: Trails) -> None:
    for number in range(12):
        await trails.record(moment_in(OLDEST) + number * DAY / 4)
        await trails.record(moment_in(OLDEST) + number * DAY / 4, of=OTHER_ORG)
    kept = await trails.record(moment_in(LAST))
    kept_there = await trails.record(moment_in(LAST), of=OTHER_ORG)
    await trails.seal()
    await trails.keep(40, ORG, OTHER_ORG)

    await trails.maintain()

    assert trails.months() == {name_of(LAST)}, "the month without entries has gone, too"
    assert (await trails.entries(), await trails.entries(OTHER_ORG)) == ({kept}, {kept_there})
    for one in (ORG, OTHER_ORG):
        report = await trails.report(one)
        assert (report.ok, report.pruned_through, report.sealed_through, report.checked) == (True, 12, 14, 2)


async def test_entries_from_after_the_month_stay_and_older_ones_that_lie_elsewhere_go(trails: Trails) -> None:
    for number in range(20):
        await trails.record(moment_in(OLDEST) + number * DAY / 4)
    late = await trails.record(moment_in(NEXT), id_at=moment_in(OLDEST))
    elsewhere = await trails.record_as(AuditEventId(derived_id("aud", "halted")), moment_in(OLDEST))
    await trails.seal()
    days = (datetime.now(moment_in(NEXT).tzinfo) - moment_in(NEXT, 1)).days
    await trails.keep(days, ORG)
    assert partition_of(trails.url, "audit_event", elsewhere) == "rest"

    await trails.maintain()

    assert await trails.entries() == {late}
    assert partition_of(trails.url, "audit_event", late) == "gone"
    report = await trails.report()
    assert (report.ok, report.pruned_through, report.sealed_through) == (True, 21, 23)
    await trails.keep(1, ORG)
    await trails.maintain()
    assert (await trails.report()).ok


async def test_a_month_that_another_organization_needs_stays_unless_that_is_little_of_it(trails: Trails) -> None:
    for number in range(20):
        await trails.record(moment_in(OLDEST) + number * DAY / 4)
    theirs = {await trails.record(moment_in(OLDEST), of=OTHER_ORG) for _ in range(3)}
    await trails.seal()
    await trails.keep(1, ORG)

    await trails.maintain()

    assert len(await trails.entries()) == 20
    assert trails.months() == {name_of(month) for month in (OLDEST, NEXT, LAST)}

    for number in range(20):
        await trails.record(moment_in(OLDEST) + number * DAY / 4)
    await trails.seal()
    await trails.maintain()

    assert await trails.entries() == set()
    assert await trails.entries(OTHER_ORG) == theirs
    for one in (ORG, OTHER_ORG):
        assert (await trails.report(one)).ok


async def test_a_chain_that_was_changed_loses_nothing(trails: Trails) -> None:
    entries = {await trails.record(moment_in(OLDEST) + number * DAY / 4) for number in range(12)}
    await trails.seal()
    await trails.keep(1, ORG)
    change = text("UPDATE audit_event SET actor = 'somebody else' WHERE id = :id")
    await trails.database.write(lambda one: one.execute(change, {"id": min(entries)}), scope=SYSTEM)

    await trails.maintain()

    assert await trails.entries() == entries
    assert not (await trails.report()).ok


async def test_a_head_that_names_an_unknown_key_keeps_its_own_chain_and_no_other(
    trails: Trails, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = await trails.record(moment_in(OLDEST), of=OTHER_ORG)
    for number in range(20):
        await trails.record(moment_in(OLDEST) + number * DAY / 4)
    await trails.seal()
    await trails.keep(1, ORG, OTHER_ORG)
    change = text("UPDATE audit_head SET key_id = 'another' WHERE organization_id = :of")
    await trails.database.write(lambda one: one.execute(change, {"of": OTHER_ORG}), scope=SYSTEM)

    await trails.maintain()

    assert (await trails.entries(), await trails.entries(OTHER_ORG)) == (set(), {theirs})
    assert OTHER_ORG in caplog.text


async def called(trails: Trails, moment: datetime) -> GatewayCall:
    call = replace(a_gateway_call(), id=ToolCallId(an_id("call", moment)), recorded_at=moment)
    await trails.stores.gateway_ledger.intend(call)
    return call


async def settle(trails: Trails, call: GatewayCall) -> None:
    settlement = GatewaySettlement(call=call, result=ToolResult.succeeded("noon"), duration_ms=7, at=moment_in(OLDEST))
    entry = replace(an_audit_event(), id=AuditEventId(an_id("aud", moment_in(OLDEST))))
    assert await trails.stores.gateway_ledger.settle(settlement, entry)


async def with_calls(trails: Trails) -> tuple[set[str], GatewayCall, GatewayCall]:
    """Ids of ten settled calls of the oldest month, an open call of it, and a call of the last
    month."""
    await trails.stores.agents.add(an_agent(), an_audit_event(90))
    await trails.stores.gateway_sessions.add(a_gateway_session(), an_audit_event(91), thread=a_thread())
    settled = [await called(trails, moment_in(OLDEST) + number * DAY) for number in range(10)]
    for call in settled:
        await settle(trails, call)
    is_open, recent = await called(trails, moment_in(OLDEST)), await called(trails, moment_in(LAST))
    await trails.keep(40, ORG)
    await trails.keep(1, OTHER_ORG)
    return {call.id for call in settled}, is_open, recent


async def test_settled_calls_go_with_their_month_and_open_ones_stay(trails: Trails) -> None:
    _, is_open, recent = await with_calls(trails)
    ledger = trails.stores.gateway_ledger

    await trails.maintain()

    assert trails.months("gateway_call") == {name_of(LAST)}
    assert {call.id for call, _ in await ledger.calls_of(ORG, is_open.session_id)} == {is_open.id, recent.id}
    assert await ledger.call_of(ORG, is_open.session_id, is_open.id) == (is_open, None)


def archived_calls(directory: Path) -> list[str]:
    files = directory.glob(f"gateway_calls/{ORG}/{OLDEST[0]}-{OLDEST[1]:02}/*.ndjson.gz")
    lines = [line for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [json.loads(line)["gateway_call"]["id"] for line in lines]


async def test_settled_calls_are_in_a_file_before_their_month_goes(trails: Trails, tmp_path: Path) -> None:
    settled, is_open, _ = await with_calls(trails)

    with refused("archive_failed"):
        await trails.maintain(RunFiles(tmp_path / "not mounted"))
    assert name_of(OLDEST) in trails.months("gateway_call"), "what cannot be written stays"
    await trails.maintain(RunFiles(tmp_path))

    assert trails.months("gateway_call") == {name_of(LAST)}
    assert sorted(archived_calls(tmp_path)) == sorted(settled)
    report = await VerifyRunArchive(archive=CheckedRunFiles(tmp_path)).execute()
    assert (report.ok, report.files, report.gateway_calls) == (True, 1, 10)
    assert await trails.stores.gateway_ledger.call_of(ORG, is_open.session_id, is_open.id) == (is_open, None)


class WritingBeside(RunFiles):
    """Files that are written while something else happens."""

    def __init__(self, directory: Path, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(directory)
        self._meanwhile = meanwhile

    async def store(
        self, organization_id: OrganizationId, thread_id: ThreadId | None, parts: AsyncIterator[Sequence[ArchivedEntry]]
    ) -> None:
        """Store them, and then let it happen."""
        await super().store(organization_id, thread_id, parts)
        if organization_id == ORG:
            await self._meanwhile()


async def test_a_month_with_a_call_that_was_settled_behind_the_archive_stays_until_that_is_written_too(
    trails: Trails, tmp_path: Path
) -> None:
    settled, is_open, _ = await with_calls(trails)

    with refused("storage_unavailable"):
        await trails.maintain(WritingBeside(tmp_path, lambda: settle(trails, is_open)))
    assert name_of(OLDEST) in trails.months("gateway_call")
    assert sorted(archived_calls(tmp_path)) == sorted(settled)

    await trails.maintain(RunFiles(tmp_path))
    assert trails.months("gateway_call") == {name_of(LAST)}
    assert set(archived_calls(tmp_path)) == {*settled, is_open.id}


async def test_a_month_that_another_organization_needs_is_not_written(trails: Trails, tmp_path: Path) -> None:
    await with_calls(trails)
    await trails.keep(None, ORG)

    await trails.maintain(RunFiles(tmp_path))

    assert name_of(OLDEST) in trails.months("gateway_call")
    assert archived_calls(tmp_path) == []
