"""Approvals and the MCP server behind a call: a change of the server makes an approval stale."""

from dataclasses import replace

import pytest

from domain.approvals.approval import ApprovalState, approval_digest
from domain.errors import ServiceError
from tests.unit.application.runs.approving import SEND, a_harness, approvals, decide, states
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent
from tests.unit.application.runs.test_approvals import OPERATOR, a_waiting_run, approve


def reinstall(harness: RunHarness) -> None:
    """Another command, as a change of the server does it."""
    changed = harness.change_server("s", command="another-server")
    harness.state.servers[changed.id] = replace(changed, version=changed.version + 1)


@pytest.mark.requirement("C3", "B13", "S5")
async def test_a_server_that_changes_after_the_request_makes_the_approval_stale() -> None:
    harness = a_harness()
    run_id, first = await a_waiting_run(harness)
    reinstall(harness)
    with pytest.raises(ServiceError) as refused:
        await decide(harness, run_id, approve(first), principal=OPERATOR)
    assert refused.value.code == "approval_stale"
    await harness.worker.execute(run_id)
    assert states(harness, run_id) == [ApprovalState.STALE, ApprovalState.PENDING]
    assert harness.connections.calls == []
    new = approvals(harness, run_id)[1]
    assert new.server is not None
    assert "another-server" in new.server.runs
    await decide(harness, run_id, approve(new), principal=OPERATOR)
    await harness.worker.execute(run_id)
    assert harness.results() == ["sent hello"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "B13", "S5")
async def test_a_server_that_changes_between_approval_and_execution_has_the_call_asked_for_again() -> None:
    harness = a_harness()
    run_id, first = await a_waiting_run(harness)
    await decide(harness, run_id, approve(first), principal=OPERATOR)
    reinstall(harness)
    await harness.worker.execute(run_id)
    assert harness.connections.calls == []
    assert states(harness, run_id) == [ApprovalState.APPROVED, ApprovalState.PENDING]


@pytest.mark.requirement("C3")
async def test_an_approval_that_an_earlier_release_requested_is_bound_to_no_server() -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    digest = approval_digest(SEND, {"text": "hello"}, harness.agent.version)
    harness.state.approvals[approval.id] = replace(approval, server=None, digest=digest)
    stored = harness.state.runs[run_id]
    call = stored.calls[approval.tool_call_id]
    assert call.approval is not None
    stored.calls[call.id] = replace(call, approval=replace(call.approval, server=None, digest=digest))
    reinstall(harness)
    await decide(harness, run_id, approve(approval), principal=OPERATOR)
    await harness.worker.execute(run_id)
    assert harness.results() == ["sent hello"]
