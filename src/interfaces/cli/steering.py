"""Starts and resumes runs, and follows them until they end or wait."""

from uuid import uuid4

from domain.json_value import JsonObject
from interfaces.cli.answers import entries_of, read_as
from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.following import Ending, follow_to_rest, stopped_by_signals
from interfaces.cli.run_display import EventFields, LiveRunDisplay, PlainRunDisplay, RunDisplay
from interfaces.cli.terminal import Terminal
from interfaces.http.runs.views import RunView


def view_for(terminal: Terminal, *, as_json: bool = False) -> RunDisplay:
    """A live view for an interactive terminal, else plain; with --json, stdout is reserved for
    the document."""
    if terminal.is_interactive and not as_json:
        return LiveRunDisplay(terminal)
    return PlainRunDisplay(terminal, answer=not as_json)


async def started(api: ServiceApi, body: JsonObject, *, thread_id: str | None, view: RunDisplay) -> Ending:
    """Start a run, on a new thread if none is given, and follow it."""
    return await _begun(
        api, path_to("runs") if thread_id is None else path_to("threads", thread_id, "runs"), body, view
    )


async def retried(api: ServiceApi, run_id: str, *, view: RunDisplay) -> Ending:
    """Continue a failed run as a new one, and follow it."""
    return await _begun(api, path_to("runs", run_id, "retry"), None, view)


async def _begun(api: ServiceApi, path: str, body: JsonObject | None, view: RunDisplay) -> Ending:
    with stopped_by_signals() as interruption:
        run = read_as(RunView, await api.post(path, body, headers={"Idempotency-Key": uuid4().hex}))
        view.remark(f"{run['id']} on {run['thread_id']}")
        return await follow_to_rest(api, run["id"], view=view, interruption=interruption)


async def resumed(api: ServiceApi, run_id: str, body: JsonObject, *, view: RunDisplay) -> Ending:
    """Resume a waiting run, and follow what happens from now on."""
    so_far = entries_of(EventFields, await listed(api, path_to("runs", run_id, "events")))
    with stopped_by_signals() as interruption:
        await api.post(path_to("runs", run_id, "resume"), body)
        after = str(so_far[-1].seq) if so_far else None
        return await follow_to_rest(api, run_id, view=view, interruption=interruption, after=after)


def shown_to_the_end(terminal: Terminal, view: RunDisplay, ending: Ending, *, as_json: bool) -> int:
    """Show how the run ended; returns the exit code."""
    view.finish(ending.run)
    if as_json:
        terminal.json(ending.document)
    return ending.exit_code
