"""The inbox is counted every few seconds: what it asks reads no runs and threads that wait for
nothing. Its history reads decisions only."""

import pytest
from sqlalchemy import Connection, Select
from sqlalchemy.dialects.sqlite import dialect

from application.audit.ports import AuditFilter
from application.runs.ports import RunFilter
from application.workflows.ports import WorkflowRunFilter
from domain.audit.event import AuditAction
from domain.runs.run import RunStatus
from domain.workflows.run import WorkflowRunStatus
from infrastructure.persistence.audit.log import matching
from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.mcp.quarantine_counts import awaiting
from infrastructure.persistence.runs import filters
from infrastructure.persistence.runs.rows import select_run
from infrastructure.persistence.tables import audit_event, run, workflow_run
from infrastructure.persistence.threads.store import quarantined
from infrastructure.persistence.workflows import run_store
from infrastructure.persistence.workflows.run_rows import OUTLINE
from tests.builders import ORG, START

_WAITING = RunFilter(status=RunStatus.REQUIRES_ACTION)
_WAITING_WORKFLOWS = WorkflowRunFilter(status=WorkflowRunStatus.REQUIRES_ACTION)


@pytest.mark.requirement("U6")
@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (quarantined.params(organization_id=ORG).limit(100), "ix_thread_quarantined"),
        (
            select_run.where(*filters.conditions(ORG, _WAITING))
            .order_by(run.c.created_at.desc(), run.c.id.desc())
            .limit(101),
            "ix_run_unfinished (status=?",
        ),
        (
            Select(*OUTLINE)
            .where(*run_store.conditions(ORG, _WAITING_WORKFLOWS))
            .order_by(workflow_run.c.created_at.desc(), workflow_run.c.id.desc())
            .limit(101),
            "ix_workflow_run_unfinished",
        ),
        (
            matching(ORG, AuditFilter(decisions=(AuditAction.THREAD_RELEASED,), since=START))
            .order_by(audit_event.c.at.desc(), audit_event.c.id.desc())
            .limit(51),
            "ix_audit_event_decisions",
        ),
        (awaiting.params(organization_id=ORG), "ix_mcp_tool_definition_standing (server_id=? AND standing=?"),
    ],
    ids=["threads", "runs", "workflow runs", "decisions", "tools"],
)
async def test_what_waits_is_found_by_its_small_index(
    sqlite: SqliteDatabase, statement: Select[tuple[object, ...]], index: str
) -> None:
    compiled = statement.compile(dialect=dialect(), compile_kwargs={"literal_binds": True})

    def plan(connection: Connection) -> list[str]:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}")]

    steps = await sqlite.read(plan, scope=SYSTEM)
    assert any(f"INDEX {index}" in step for step in steps), steps
    assert all(" INDEX " in step for step in steps if step.startswith(("SCAN", "SEARCH"))), steps
