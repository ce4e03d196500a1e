"""Sums of tool calls from stored audit entries, whatever is in these."""

from dataclasses import replace

from domain.audit.event import AuditAction
from infrastructure.persistence.usage.tool_rows import sums_of_calls
from tests.builders import START, an_audit_event
from tests.doubles.audit_chain import entry_of

A_CALL = replace(an_audit_event(1), action=AuditAction.TOOL_EXECUTED, tool="read", duration_ms=7, at=START)


def test_only_outcomes_of_calls_with_readable_values_are_summed() -> None:
    spoiled = [list(entry_of(A_CALL)) for _ in range(3)]
    spoiled[0][5], spoiled[1][7], spoiled[2][9] = "soon", 5, "long"
    entries = [entry_of(A_CALL), entry_of(an_audit_event(2)), *(tuple(entry) for entry in spoiled)]
    assert sums_of_calls(entries) == {(START.date().toordinal(), "read"): [2, 0, 0, 7]}
