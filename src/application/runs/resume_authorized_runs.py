"""ResumeAuthorizedRuns: continue the runs of a person that wait for an account which is connected
now."""

import logging
from datetime import datetime

from application.mcp.account_server import account_topic
from application.mcp.authorization import McpAuthorizer
from application.mcp.ports import McpServerStore
from application.runs.ports import RunFilter, RunQueue, RunReader, RunStore
from application.runs.sealed_input import sealed, unsealed
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.tools.ports import Box
from domain.errors import ServiceError, is_storage_away
from domain.identity.api_key import person_of
from domain.ids import McpServerId
from domain.mcp.elicitation import ElicitationAction, ElicitationAnswer
from domain.mcp.server import McpServer
from domain.runs.ledger import InputAnswer, ToolCall, ToolCallState
from domain.runs.resuming import Resumption
from domain.runs.run import Run, RunStatus

logger = logging.getLogger(__name__)

_ACCEPTED = ElicitationAnswer(action=ElicitationAction.ACCEPT)


class ResumeAuthorizedRuns:
    """The ports `AccountWaiters` and `AccountConsents`. Rules:
    - Only runs of the person that the server acts for, and only their calls of this server that ask
      for the account.
    - Each run continues on any worker, as if the person had answered.
    - Calls of the gateway that wait for the account are woken.
    - A run that has just begun to wait is continued if the account was connected since it was
      executed; once in a call, because a renewal looks the same, and the server may refuse the
      account all the same.
    - A run that changed meanwhile, or whose answers cannot be read, is left as it is. The others
      continue.
    """

    def __init__(
        self,
        *,
        runs: RunStore,
        reader: RunReader,
        queue: RunQueue,
        servers: McpServerStore,
        authorizer: McpAuthorizer,
        box: Box,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._runs = runs
        self._reader = reader
        self._queue = queue
        self._servers = servers
        self._authorizer = authorizer
        self._box = box
        self._wakeups = wakeups
        self._clock = clock

    async def connected(self, server: McpServer) -> None:
        self._wakeups.wake(account_topic(server))
        wanted = RunFilter(status=RunStatus.REQUIRES_ACTION, started_by=server.person_id)
        cursor = None
        while server.person_id is not None:
            request = PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor)
            page = await self._reader.page(server.organization_id, wanted, request)
            for run in page.items:
                if any(use.elicitation is not None and use.elicitation.is_for_account for use in run.pending):
                    await self._resume(run, server.id)
            if (cursor := page.next_cursor) is None:
                return

    async def began_to_wait(self, run: Run, since: datetime) -> None:
        person_id = person_of(run.requested_by)
        calls = () if person_id is None else await self._reader.tool_calls(run.organization_id, run.id)
        for server_id in {call.server_id for call in calls if call.server_id is not None and self._is_first_wait(call)}:
            server = await self._servers.get(run.organization_id, server_id)
            account = None if server is None else await self._authorizer.account(server.acting_for(person_id))
            if account is not None and account.renewed_at >= since:
                await self._resume(run, server_id)

    def _is_first_wait(self, call: ToolCall) -> bool:
        if call.server_id is None or call.input is None or not _waits(call, call.server_id):
            return False
        return unsealed(call.input, self._box).number == 1

    async def _resume(self, run: Run, server_id: McpServerId) -> None:
        try:
            calls = await self._reader.tool_calls(run.organization_id, run.id)
            answers = tuple(self._answer(call) for call in calls if _waits(call, server_id))
            if not answers:
                return
            resumption = Resumption(answers=answers, actor=run.requested_by or "system", at=self._clock.now())
            changed = await self._runs.change(run.organization_id, run.id, resumption.decide)
        except ServiceError as error:
            if is_storage_away(error):
                raise
            logger.info("a run did not continue with a connected account", extra={"run_id": run.id, "code": error.code})
            return
        if changed is not None and changed.run.status is RunStatus.QUEUED:
            await self._queue.submit(run.id)

    def _answer(self, call: ToolCall) -> InputAnswer:
        assert call.elicitation is not None
        assert call.input is not None
        answered = unsealed(call.input, self._box).answered(_ACCEPTED)
        return InputAnswer(
            tool_call_id=call.id,
            request_id=call.elicitation.request_id,
            input=sealed(answered, self._box),
            next=answered.current,
        )


def _waits(call: ToolCall, server_id: McpServerId) -> bool:
    if call.state is not ToolCallState.AWAITING_INPUT or call.elicitation is None or call.input is None:
        return False
    return call.server_id == server_id and call.elicitation.is_for_account
