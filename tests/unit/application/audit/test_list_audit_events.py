"""Reading the audit trail."""

import pytest

from application.audit.ports import AuditFilter
from application.audit.queries import ListAuditEvents
from domain.audit.event import AuditAction
from domain.identity.role import Role
from tests.builders import an_audit_event
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.state import InMemoryState
from tests.unit.application.actors import a_principal, a_stranger


@pytest.mark.requirement("C6")
async def test_everybody_of_the_organization_reads_the_trail_and_nobody_else() -> None:
    state = InMemoryState()
    log = InMemoryAuditLog(state)
    await log.record(an_audit_event(1, action=AuditAction.TOOL_EXECUTED))
    await log.record(an_audit_event(2, action=AuditAction.RUN_COMPLETED))
    list_events = ListAuditEvents(audit_log=log)
    assert [
        entry.action
        for entry in (
            await list_events.execute(principal=a_principal(Role.VIEWER), wanted=AuditFilter(action="tool.*"))
        ).items
    ] == [AuditAction.TOOL_EXECUTED]
    assert (await list_events.execute(principal=a_stranger())).items == ()
