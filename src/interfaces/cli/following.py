"""Follows a run until it ends or waits; Ctrl-C cancels it through the service."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass

from domain.json_value import JsonObject
from interfaces.cli.answers import parsed_as, read_as
from interfaces.cli.api import ServerEvent, ServiceApi, path_to
from interfaces.cli.failures import FAILED, REQUIRES_ACTION, CommandFailure, ConnectionLost, ServiceUnreachable
from interfaces.cli.run_display import EventFields, RunDisplay
from interfaces.http.runs.views import RunView, RunWithMessagesView

RECONNECTS = 5
RECONNECT_PAUSE_S = 0.5
CANCELLING_TIMEOUT_S = 15.0


class Interruption:
    """The signal by which the user interrupted, if any."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self.signal: signal.Signals | None = None

    def ask(self, by: signal.Signals) -> None:
        """Record the interruption."""
        self.signal = by
        self._asked.set()

    async def wait(self) -> None:
        """Wait for an interruption."""
        await self._asked.wait()


@contextmanager
def stopped_by_signals() -> Iterator[Interruption]:
    """Within this context the first SIGINT or SIGTERM is recorded; a second one has its usual
    effect."""
    loop = asyncio.get_running_loop()
    interruption = Interruption()
    signals = (signal.SIGINT, signal.SIGTERM)

    def ask(by: signal.Signals) -> None:
        interruption.ask(by)
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, ask, number)
    try:
        yield interruption
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of following: `{run, messages}` from the service, and the exit code."""

    document: JsonObject
    run: RunView
    exit_code: int


async def follow_to_rest(
    api: ServiceApi, run_id: str, *, view: RunDisplay, interruption: Interruption, after: str | None = None
) -> Ending:
    """Show the run's events after `after` until it ends or waits. An interruption cancels the
    run first."""
    following = asyncio.create_task(_show_events(api, run_id, view=view, after=after))
    asked = asyncio.create_task(interruption.wait())
    try:
        await asyncio.wait({following, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not following.done():
            await _cancel(api, run_id, view=view)
            await asyncio.wait({following}, timeout=CANCELLING_TIMEOUT_S)
        if not following.done():
            raise CommandFailure(f"The run {run_id} is being cancelled, but has not stopped yet.")
        await following
    finally:
        for task in (following, asked):
            task.cancel()
        await asyncio.wait({following, asked})
    document = await api.get(path_to("runs", run_id, "wait"))
    run = read_as(RunWithMessagesView, document)["run"]
    return Ending(document=document, run=run, exit_code=exit_code_of(run["status"], interruption.signal))


def exit_code_of(status: str, interrupted_by: signal.Signals | None) -> int:
    """0 completed, 3 requires action, 128 + signal when the user cancelled it, else 1."""
    match status:
        case "completed":
            return 0
        case "requires_action":
            return REQUIRES_ACTION
        case "cancelled" if interrupted_by is not None:
            return 128 + interrupted_by
        case _:
            return FAILED


async def events_of_run(
    api: ServiceApi, run_id: str, *, after: str | None, reconnects: int = RECONNECTS
) -> AsyncGenerator[ServerEvent, None]:
    """The run's events before `end`, each once, over as many connections as needed."""
    failures = 0
    path = path_to("runs", run_id, "stream")
    while True:
        try:
            async with aclosing(api.events(path, after=after)) as events:
                async for event in events:
                    if event.type == "end":
                        return
                    failures, after = 0, event.id or after
                    yield event
        except (ConnectionLost, ServiceUnreachable):
            pass
        failures += 1
        if failures > reconnects:
            raise CommandFailure(
                f"The connection to the service at {api.address} is lost. The run continues there; see "
                f"`dragoman run show {run_id}`."
            )
        await asyncio.sleep(RECONNECT_PAUSE_S * failures)


async def persistently(request: Callable[[], Awaitable[JsonObject]], *, attempts: int) -> JsonObject:
    """The answer to a request that may be repeated, as soon as the service gives it. Raises what
    the last attempt raises."""
    for failures in range(1, attempts):
        try:
            return await request()
        except (ConnectionLost, ServiceUnreachable):
            await asyncio.sleep(RECONNECT_PAUSE_S * failures)
    return await request()


async def _show_events(api: ServiceApi, run_id: str, *, view: RunDisplay, after: str | None) -> None:
    async with aclosing(events_of_run(api, run_id, after=after)) as events:
        async for event in events:
            view.show(event.type, parsed_as(EventFields, event.data))


async def _cancel(api: ServiceApi, run_id: str, *, view: RunDisplay) -> None:
    view.remark(f"Cancelling {run_id} … (again to leave at once)")
    await api.post(path_to("runs", run_id, "cancel"))
