"""Runs as tasks of A2A: states, contexts, answers and what a task waits for."""

from dataclasses import replace

import pytest

from domain.a2a.questions import QuestionKind, asked_of
from domain.a2a.tasks import TaskState, context_of, state_of, statuses_of, task_json
from domain.ids import ToolCallId
from domain.mcp.elicitation import Elicitation
from domain.runs.limits import IncompleteReason
from domain.runs.run import RunError, RunStatus
from domain.threads.message import ToolUse
from tests.builders import a_run

pytestmark = pytest.mark.requirement("X5")

PAGE = Elicitation(request_id="q1", message="Sign in:", url="https://example.com/consent")
FORM = Elicitation(request_id="q2", message="Which?", schema={"type": "object"})


def use(elicitation: Elicitation | None = None) -> ToolUse:
    return ToolUse(id=ToolCallId("call_1"), name="look", params={"at": "x"}, elicitation=elicitation)


@pytest.mark.parametrize("status", RunStatus)
def test_every_status_is_a_state_and_is_found_by_it(status: RunStatus) -> None:
    state = state_of(a_run(status=status))
    assert status in statuses_of(state)
    ended = state in {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED}
    assert ended == status.is_terminal


def test_a_run_that_waits_for_visits_of_pages_alone_requires_authorization() -> None:
    waiting = a_run(status=RunStatus.REQUIRES_ACTION)
    assert state_of(replace(waiting, pending=(use(PAGE),))) is TaskState.AUTH_REQUIRED
    assert state_of(replace(waiting, pending=(use(PAGE), use(FORM)))) is TaskState.INPUT_REQUIRED
    assert statuses_of(TaskState.AUTH_REQUIRED) == {RunStatus.REQUIRES_ACTION}


def test_a_question_says_how_it_is_answered() -> None:
    page, form, result = map(asked_of, (use(PAGE), use(FORM), use()))
    assert [question.kind for question in (page, form, result)] == [
        QuestionKind.PAGE,
        QuestionKind.FORM,
        QuestionKind.RESULT,
    ]
    assert page.text == "Sign in: https://example.com/consent"
    assert (page.as_json()["url"], form.as_json()["schema"]) == (PAGE.url, FORM.schema)
    assert (result.id, page.id, form.id) == ("call_1", "call_1:q1", "call_1:q2")


def test_the_context_is_the_clients_own_or_the_thread() -> None:
    assert context_of(a_run()) == a_run().thread_id
    assert context_of(replace(a_run(), client_request={"context": "mine"})) == "mine"


def test_an_answer_is_text_or_by_a_schema_data_and_what_is_missing_is_told() -> None:
    done = replace(a_run(status=RunStatus.COMPLETED), output='{"n": 1}')
    assert task_json(done)["artifacts"] == [{"artifactId": "answer", "name": "answer", "parts": [{"text": '{"n": 1}'}]}]
    by_schema = task_json(replace(done, output_json={"n": 1}))["artifacts"]
    parts = [{"data": {"n": 1}, "mediaType": "application/json"}]
    assert by_schema == [{"artifactId": "answer", "name": "answer", "parts": parts}]
    assert "artifacts" not in task_json(a_run())
    assert "artifacts" not in task_json(done, with_artifacts=False)
    error = RunError(code="model_unavailable", detail="The model is away.")
    for run, text in (
        (replace(a_run(status=RunStatus.FAILED), error=error), "The model is away."),
        (a_run(status=RunStatus.HALTED), "A policy ended the run."),
        (
            replace(a_run(status=RunStatus.INCOMPLETE), incomplete_reason=IncompleteReason.MAX_TURNS),
            "The answer is incomplete: max_turns.",
        ),
    ):
        assert text in str(task_json(run)["status"])
