"""RunFilter: which lists of runs have an index, and which are walked."""

import pytest

from application.runs.ports import RunFilter
from domain.runs.run import RunStatus
from tests.builders import AGENT, KEY, THREAD

pytestmark = pytest.mark.requirement("U6")
_ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED})


@pytest.mark.parametrize(
    "wanted",
    [
        RunFilter(model="p:m"),
        RunFilter(model="p:m", agent_id=AGENT, error="model_auth"),
        RunFilter(started_by=KEY, agent_id=AGENT),
        RunFilter(started_by=KEY, status=RunStatus.COMPLETED),
        RunFilter(started_by=KEY, statuses=_ENDED),
        RunFilter(started_by=KEY, error="model_auth"),
        RunFilter(error="model_auth", agent_id=AGENT, status=RunStatus.FAILED),
        RunFilter(error="model_auth", status=RunStatus.COMPLETED),
        RunFilter(error="model_auth", statuses=frozenset({RunStatus.CANCELLED, RunStatus.QUEUED})),
    ],
)
def test_conditions_that_no_index_has_are_walked(wanted: RunFilter) -> None:
    assert wanted.is_walked


@pytest.mark.parametrize(
    "wanted",
    [
        RunFilter(),
        RunFilter(error="model_auth"),
        RunFilter(error="model_auth", status=RunStatus.FAILED),
        RunFilter(error="model_auth", statuses=_ENDED),
        RunFilter(error="model_auth", status=RunStatus.QUEUED),
        RunFilter(started_by=KEY),
        RunFilter(started_by=KEY, status=RunStatus.REQUIRES_ACTION),
        RunFilter(model="p:m", statuses=frozenset({RunStatus.QUEUED})),
        RunFilter(model="p:m", thread_id=THREAD),
        RunFilter(model="p:m", history_key="0" * 64),
        RunFilter(model="p:m", text="apples"),
        RunFilter(model="p:m", tool="echo"),
        RunFilter(started_by=KEY, agent_id=AGENT, metadata=("a", "b")),
    ],
)
def test_what_an_index_has_and_what_is_searched_among_the_newest_is_not_walked(wanted: RunFilter) -> None:
    assert not wanted.is_walked
