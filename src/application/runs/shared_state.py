"""Reads the state that a run shares with its front end from the stored events."""

from application.runs.ports import RunReader
from domain.runs.run import Run
from domain.runs.shared_state import SharedState

_PAGE = 500


async def read_on(state: SharedState, runs: RunReader, run: Run) -> SharedState:
    """The state after all events of the run; those that it has read are not read again."""
    while state.read_to < run.last_seq:
        page = await runs.events(run.organization_id, run.id, after_seq=state.read_to, limit=_PAGE)
        if not page:
            break
        for event in page:
            state.read(event)
    return state
