"""Tasks of gateway sessions: how a run stands for who began it as a task."""

import pytest

from domain.gateway.task import TaskStatus, status_of
from domain.runs.run import RunStatus
from tests.builders import a_run

ENDS = {
    RunStatus.COMPLETED: TaskStatus.COMPLETED,
    RunStatus.INCOMPLETE: TaskStatus.COMPLETED,
    RunStatus.FAILED: TaskStatus.FAILED,
    RunStatus.HALTED: TaskStatus.FAILED,
    RunStatus.CANCELLED: TaskStatus.CANCELLED,
}


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("status", list(RunStatus))
def test_a_task_has_ended_exactly_when_its_run_has(status: RunStatus) -> None:
    task = status_of(a_run(status=status))
    assert task is ENDS.get(status, TaskStatus.WORKING)
    assert task.is_terminal is status.is_terminal
