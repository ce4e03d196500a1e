"""Who or what started runs, with the page about it."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from domain.ids import AgentId, ApiKeyId, RunId, ToolCallId
from domain.json_value import JsonObject
from domain.runs.called_by import CalledBy
from domain.runs.run import Run
from interfaces.console.resource_names import Named, ResourceNames
from interfaces.console.run_starters import RunStarters
from tests.builders import a_run, a_run_id
from tests.unit.application.actors import a_principal

pytestmark = pytest.mark.requirement("U6")

KEY = Named(name="ci", id="key_1")
SCHEDULE = Named(name="schedule nightly", link="/console/schedules/sch_1", id="sch_1")
WORKFLOW = Named(name="workflow triage", link="/console/workflows/runs/wfr_1", id="wfr_1")
GONE = Named(name="wfr_2", id="wfr_2")
CALLED = CalledBy(tool_call_id=ToolCallId("call_1"), depth=1, run_id=RunId("run_7"), agent_id=AgentId("agt_1"))


def by(starter: str, metadata: JsonObject | None = None, *, retry_of: RunId | None = None) -> Run:
    run = a_run(a_run_id(2), requested_by=ApiKeyId(starter), metadata=metadata)
    return replace(run, retry_of=retry_of)


@pytest.mark.parametrize(
    ("run", "starter"),
    [
        (by("key_1"), KEY),
        (by("schedule:sch_1"), SCHEDULE),
        (by("key_1", {"workflow_run_id": "wfr_1"}), WORKFLOW),
        (by("key_1", {"workflow_run_id": "wfr_2"}), KEY),
        (by("key_1", {"workflow_run_id": 7}), KEY),
        (by("key_1", CALLED.metadata()), Named(name="agent guide", link="/console/runs/run_7", id="run_7")),
        (by("key_1", retry_of=RunId("run_3")), Named(name="retry", link="/console/runs/run_3")),
        (a_run(requested_by=None), Named(name="–")),
    ],
    ids=("key", "schedule", "workflow", "deleted workflow", "a client's metadata", "agent", "retry", "nobody"),
)
async def test_a_run_is_started_by_its_cause_or_else_by_who_asked(
    mocker: MockerFixture, run: Run, starter: Named
) -> None:
    names = mocker.create_autospec(ResourceNames, instance=True)
    known = {"key_1": KEY, "schedule:sch_1": SCHEDULE, "wfr_1": WORKFLOW, "wfr_2": GONE}
    names.of.side_effect = lambda _, ids: {
        each: known.get(each, Named(name="guide", id=each)) for each in ids if each is not None
    }
    assert await RunStarters(resource_names=names).of(a_principal(), (run,)) == {run.id: starter}
