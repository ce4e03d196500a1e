"""Executes calls that change the state of the front end."""

from typing import cast

from application.runs.execution.run_session import RunSession
from application.runs.ports import RunReader
from application.runs.shared_state import read_on
from application.tools import failure_text
from domain.json_patch import PatchFault
from domain.json_value import JsonObject
from domain.runs.ledger import ToolCall
from domain.tools.result import ToolResult


class ChangeState:
    """Rules:
    - A patch applies to the state with the patches of all calls that were executed before, as the
      stored events have them.
    - A patch that does not apply changes nothing, and the model reads why.
    - The stored outcome of the call is the change. The calls of a run are executed and stored one
      after another.
    """

    def __init__(self, *, runs: RunReader) -> None:
        self._runs = runs

    async def execute(self, session: RunSession, call: ToolCall) -> ToolResult:
        state = await read_on(session.shared_state, self._runs, session.run)
        try:
            state.after(cast("list[JsonObject]", call.params["patch"]))
        except PatchFault as fault:
            return failure_text.native_failure("patch_invalid", f"The state was not changed: {fault}.")
        return ToolResult.succeeded("The state of the application is changed.")
