"""Reading workflow runs: one, a page, the definition of one; and following one."""

from collections.abc import AsyncGenerator

from application.identity.key_validity import KeyValidity, access_topics
from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from application.workflows.ports import WorkflowRunFilter, WorkflowRunStore, workflow_events_topic
from application.workflows.run_access import existing_run
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import WorkflowRunId
from domain.teams import sees
from domain.workflows.graph import WorkflowDefinition
from domain.workflows.run import WorkflowEvent, WorkflowRun, WorkflowRunStatus

REREAD_S = 5.0
"""Interval at which a follower reads without a signal."""
_PAGE = 500


class GetWorkflowRun:
    """Requires `viewer`."""

    def __init__(self, *, runs: WorkflowRunStore) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, run_id: WorkflowRunId) -> WorkflowRun:
        """The run with its nodes. Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        return await existing_run(self._runs, principal, run_id)

    async def definition(self, principal: Principal, run: WorkflowRun) -> WorkflowDefinition:
        """The definition that the run executes."""
        principal.require(Role.VIEWER)
        return await self._runs.definition(principal.organization_id, run)


class ListWorkflowRuns:
    """Requires `viewer`."""

    def __init__(self, *, runs: WorkflowRunStore) -> None:
        self._runs = runs

    async def execute(self, principal: Principal, wanted: WorkflowRunFilter, request: PageRequest) -> Page[WorkflowRun]:
        """Matching runs, newest first."""
        principal.require(Role.VIEWER)
        return await self._runs.page(principal.organization_id, wanted, request.seen_by(principal))


class WatchWorkflowRun:
    """Rules:
    - Requires `viewer`, and at each delivery a valid key of who sees the run then. Ends at once
      when the key is no longer valid.
    - Delivers events in order, each once, from any point.
    - Ends when the run has ended, or, unless `to_the_end`, when it waits for a person.
    """

    def __init__(self, *, runs: WorkflowRunStore, keys: KeyValidity, wakeups: Wakeups) -> None:
        self._runs = runs
        self._keys = keys
        self._wakeups = wakeups

    async def follow(
        self, principal: Principal, run_id: WorkflowRunId, *, after_seq: int = 0, to_the_end: bool = False
    ) -> AsyncGenerator[WorkflowEvent, None]:
        """Events after `after_seq`, stored ones first, then new ones. Raises NOT_FOUND,
        UNAUTHENTICATED."""
        principal.require(Role.VIEWER)
        seq = after_seq
        async with self._wakeups.subscribe(workflow_events_topic(run_id), *access_topics(principal)) as signal:
            while True:
                # The run is read first, so the events include everything up to its status.
                run = await existing_run(self._runs, principal, run_id)
                events = await self._runs.events(principal.organization_id, run_id, after_seq=seq, limit=_PAGE)
                if not sees(await self._keys.require(principal), run.team):
                    raise not_found("workflow run", run_id)
                for event in events:
                    yield event
                    seq = event.seq
                waits = run.status is WorkflowRunStatus.REQUIRES_ACTION and not to_the_end
                at_rest = run.status.is_terminal or waits
                if at_rest and seq >= run.last_seq:
                    return
                if len(events) < _PAGE:
                    await signal.wait(REREAD_S)
