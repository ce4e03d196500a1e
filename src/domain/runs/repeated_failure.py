"""Detects a tool that fails with the same error turn after turn."""

import re
from collections.abc import Sequence

from domain.ids import RunId, ToolCallId
from domain.threads.message import Message, Role
from domain.tools.meta_tools import called_name
from domain.tools.result import OUTCOME_UNKNOWN

TURNS_IN_A_ROW = 3
_REFERENCE = re.compile(r"\(reference [^()]*\)")


def repeatedly_failing_tool(transcript: Sequence[Message], run_id: RunId) -> str | None:
    """The tool that failed with the same error in each of the run's last three turns, if any.
    References to log lines are ignored. A call that the end of a worker interrupted is no failure
    of its tool."""
    meant: dict[ToolCallId, str] | None = None
    common: set[tuple[str, str]] | None = None
    turns = 0
    for message in reversed(transcript):
        if message.run_id != run_id:
            break
        if message.role is not Role.TOOL:
            continue
        failed = [result for result in message.tool_results if result.is_error and result.result != OUTCOME_UNKNOWN]
        if not failed:
            return None
        if meant is None:
            meant = {use.id: called_name(use) for earlier in transcript for use in earlier.tool_uses}
        failures = {
            (meant.get(result.tool_id, result.tool_name), _REFERENCE.sub("", result.result)) for result in failed
        }
        common = failures if common is None else common & failures
        turns += 1
        if not common:
            return None
        if turns == TURNS_IN_A_ROW:
            return min(common)[0]
    return None
