"""Which pending calls `dragoman run resume` settles."""

from domain.json_value import JsonValue
from tests.unit.interfaces.cli.fake_service import FakeService, run_document


def test_the_beginning_of_a_calls_id_stands_for_the_one_pending_call_that_begins_so() -> None:
    pending: list[JsonValue] = [
        {"type": "tool_use", "id": f"call_{end}", "name": "send_email", "params": {}} for end in ("a1", "a2", "b1")
    ]
    waiting = run_document("requires_action", pending=pending)
    service = (
        FakeService()
        .on("GET", "/v1/runs/run_1", waiting)
        .on("GET", "/v1/runs/run_1/events", {"data": [], "next_cursor": None})
        .on("POST", "/v1/runs/run_1/resume", run_document("queued"))
    )
    service.run("run", "resume", "run_1", "--approve", "call_b", "--deny", "call_a1", "--result", "call_c=x")
    assert service.sent("POST", "/v1/runs/run_1/resume") == [
        {
            "tool_results": [{"tool_call_id": "call_c", "result": "x"}],
            "approvals": [
                {"tool_call_id": "call_b1", "decision": "approve"},
                {"tool_call_id": "call_a1", "decision": "deny"},
            ],
        }
    ]
    refused = service.run("run", "resume", "run_1", "--approve", "call_a")
    assert (refused.exit_code, refused.err) == (
        2,
        "Error: call_a is the beginning of 2 calls: call_a1, call_a2. Give more of it.\n",
    )
