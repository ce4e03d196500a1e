"""Messages of a task as answers to what its run waits for."""

from dataclasses import replace
from typing import Any

import pytest

from domain.approvals.approval import PendingApproval
from domain.approvals.decision import CallDecision
from domain.ids import ApprovalId, ToolCallId
from domain.mcp.elicitation import Elicitation
from domain.runs.run import Run, RunStatus
from domain.threads.message import ToolUse
from interfaces.http.a2a.answers import Answers, answers_of
from interfaces.http.a2a.schemas import PartBody
from tests.builders import START, a_run
from tests.refusals import refused

pytestmark = pytest.mark.requirement("X5")

CALL = ToolCallId("call_1")


FORM = Elicitation(request_id="q", message="Which?", schema={"type": "object", "properties": {"a": {}}})
PAGE = Elicitation(request_id="q", message="Sign in:", url="https://example.com")


def waiting(*uses: ToolUse) -> Run:
    return replace(a_run(status=RunStatus.REQUIRES_ACTION), pending=uses)


def asks(elicitation: Elicitation | None = None) -> ToolUse:
    return ToolUse(id=CALL, name="look", params={}, elicitation=elicitation)


def wants_approval(call_id: str = CALL) -> ToolUse:
    approval = PendingApproval(approval_id=ApprovalId("apr_1"), expires_at=START, reason="By policy.")
    return ToolUse(id=ToolCallId(call_id), name="look", params={}, approval=approval)


def answered(run: Run, *parts: Any) -> Answers:
    return answers_of(run, [PartBody(text=part) if isinstance(part, str) else PartBody(data=part) for part in parts])


def test_a_form_is_filled_or_not() -> None:
    for given in ({"action": "accept", "content": {"a": 12}}, {"action": "decline"}, {"action": "cancel"}):
        [result] = answered(waiting(asks(FORM)), {"id": "call_1:q", **given}).results
        assert result.result == {**given, "request_id": "q"}


def test_a_page_is_visited_or_not() -> None:
    for text, action in (("Done.", "accept"), ("cancel", "cancel"), ("decline", "decline")):
        [result] = answered(waiting(asks(PAGE)), text).results
        assert result.result == {"action": action, "request_id": "q"}


def test_a_text_is_the_result_of_a_call_of_the_client() -> None:
    [result] = answered(waiting(asks()), "a", "b").results
    assert (result.tool_call_id, result.result, result.is_error) == (CALL, "a\nb", False)
    [failed] = answered(waiting(asks()), {"id": CALL, "result": {"n": 1}, "isError": True}).results
    assert (failed.result, failed.is_error) == ({"n": 1}, True)


def test_a_decision_may_replace_arguments_and_say_why() -> None:
    given = {"id": "call_1:apr_1", "approved": True, "arguments": {"b": 1}, "reason": "Fine."}
    named = ApprovalId("apr_1")
    decision = CallDecision(tool_call_id=CALL, approve=True, arguments={"b": 1}, reason="Fine.", approval_id=named)
    assert answered(waiting(wants_approval()), given).decisions == (decision,)
    both = waiting(wants_approval(), wants_approval("call_2"))
    several = [{"id": "call_1:apr_1", "approved": True}, {"id": "call_2:apr_1", "approved": False}]
    assert [decision.approve for decision in answered(both, several).decisions] == [True, False]


@pytest.mark.parametrize(
    ("run", "parts"),
    [
        (waiting(wants_approval()), ["approve"]),
        (waiting(wants_approval()), [{"approved": True}]),
        (waiting(wants_approval()), [{"id": CALL, "approved": True}]),
        (waiting(wants_approval()), [{"id": "call_1:apr_0", "approved": True}]),
        (waiting(wants_approval()), [{"id": "call_1:apr_1", "approved": "yes"}]),
        (waiting(wants_approval()), [{"id": "call_1:apr_1", "approved": True, "arguments": "{}"}]),
        (waiting(wants_approval()), [{"id": "call_1:apr_1", "approved": True, "arguments": []}]),
        (waiting(wants_approval()), [{"id": "call_1:apr_1", "approved": False, "reason": 1}]),
        (waiting(wants_approval()), ["deny", {"id": "call_1:apr_1", "approved": True}]),
        (waiting(asks(PAGE)), ["Do not sign in"]),
        (waiting(asks(PAGE)), ["yes"]),
        (waiting(asks(FORM)), ["no"]),
        (waiting(asks(FORM)), [{"action": "accept", "content": {"a": 1}}]),
        (waiting(asks(FORM)), [{"id": "call_1:q", "content": {"a": 1}}]),
        (waiting(wants_approval()), [{"id": "call_9", "approved": True}]),
        (waiting(wants_approval()), [" "]),
        (waiting(wants_approval()), ["approve", 7]),
        (waiting(wants_approval(), wants_approval("call_2")), ["approve"]),
        (waiting(wants_approval(), wants_approval("call_2")), [{"approved": True}]),
        (waiting(asks()), [{"approved": True}]),
    ],
)
def test_what_answers_nothing_is_refused(run: Run, parts: list[Any]) -> None:
    with refused("answer_invalid"):
        answered(run, *parts)
