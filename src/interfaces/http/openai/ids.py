"""Ids of OpenAI's objects, made from ours so that nothing has to be stored to find the one by the
other."""

import re
from collections.abc import Iterable

from domain.ids import RunId, ToolCallId
from domain.runs.run import Run
from domain.threads.message import ToolUse
from interfaces.console_paths import PATH as CONSOLE

_CALL = re.compile(r"call_([0-9A-Za-z]{26})_([0-9a-f]{8})")
_NOTICE = re.compile(r"Decide at \S*/console/runs/(run_[0-9A-Za-z]{26}), then write again\.")


def completion_id(run_id: RunId) -> str:
    return f"chatcmpl-{_own(run_id)}"


def call_id(run_id: RunId, tool_call_id: ToolCallId) -> str:
    """The id of a pending call for its client: 40 characters, as long as OpenAI's ids may be."""
    return f"call_{_own(run_id)}_{_own(tool_call_id)[:8]}"


def run_of_call(given: str) -> RunId | None:
    """The run of a pending call; None for an id that is not one of ours."""
    found = _CALL.fullmatch(given)
    return None if found is None else RunId(f"run_{found.group(1)}")


def pending_call(given: str, pending: Iterable[ToolUse]) -> ToolUse | None:
    """The call that the client's id names, among those of its run."""
    found = _CALL.fullmatch(given)
    if found is None:
        return None
    return next((use for use in pending if use.id.startswith(f"call_{found.group(2)}")), None)


def notice(run: Run, address: str | None) -> str:
    """What an answer says in place of the calls that wait for people. `linked_run` reads it."""
    return notice_of(run.id, [use.name for use in run.pending if not is_client_call(use)], address)


def notice_of(run_id: RunId, tools: Iterable[str], address: str | None) -> str:
    """As `notice`, for these tools."""
    names = ", ".join(dict.fromkeys(tools))
    link = f"{address or ''}{CONSOLE}/runs/{run_id}"
    return f"This needs a decision by a person before it continues: {names}. Decide at {link}, then write again."


def is_client_call(use: ToolUse) -> bool:
    """Whether the client settles a pending call, and no approver or answer to a server."""
    return use.approval is None and use.elicitation is None


def linked_run(text: str) -> RunId | None:
    """The run in the last notice of a text that was an answer of ours."""
    found = _NOTICE.findall(text)
    return RunId(found[-1]) if found else None


def _own(identifier: str) -> str:
    return identifier.partition("_")[2]
