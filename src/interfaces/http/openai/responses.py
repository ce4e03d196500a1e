"""Answers requests for responses, whole, streamed or in the background: all are views of the events
of one run."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import msgspec
from litestar.response.base import ASGIResponse
from litestar.types import Receive

from application.mcp.oauth_client import PublicAddress
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.ports import RunFilter
from application.runs.queries import GetRun, GetRunEvents, ListRuns
from application.runs.watch_run import WatchRun
from application.system.pages import PageRequest
from application.threads.delete_thread import DeleteThread, DeleteThreadCommand
from application.threads.queries import ListMessages
from domain.errors import conflict
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from domain.runs.run import Run
from interfaces.http.openai.chat import json_response
from interfaces.http.openai.errors import stream_error
from interfaces.http.openai.leaving import at_rest
from interfaces.http.openai.response_events import ResponseEvents
from interfaces.http.openai.response_ids import Place, named, no_response, place_of
from interfaces.http.openai.response_inputs import input_items
from interfaces.http.openai.response_runs import ResponseRuns, is_stored
from interfaces.http.openai.response_schemas import ResponseBody
from interfaces.http.runs.answer import run_location
from interfaces.http.runs.provider_words import told_event
from interfaces.http.runs.stored_events import stored_events
from interfaces.http.sse import EventStream
from interfaces.http.stream_places import StreamPlaces
from interfaces.http.threads.stored_messages import stored_messages


class Responses:
    """Rules:
    - A response is read, and its events are sent again from any number, as long as its run is kept.
    - A request with `store: false` has a response that is not read again.
    - A client that leaves harms nothing: the run continues.
    - A response is deleted with its thread, if that has nothing else.
    """

    def __init__(
        self,
        *,
        response_runs: ResponseRuns,
        watch_run: WatchRun,
        get_run: GetRun,
        get_run_events: GetRunEvents,
        list_runs: ListRuns,
        list_messages: ListMessages,
        cancel_run: CancelRun,
        delete_thread: DeleteThread,
        public_address: PublicAddress,
        places: StreamPlaces,
        heartbeat_s: float,
    ) -> None:
        self._response_runs = response_runs
        self._watch_run = watch_run
        self._get_run = get_run
        self._get_run_events = get_run_events
        self._list_runs = list_runs
        self._list_messages = list_messages
        self._cancel_run = cancel_run
        self._delete_thread = delete_thread
        self._address = public_address
        self._places = places
        self._heartbeat_s = heartbeat_s

    async def create(
        self, principal: Principal, body: ResponseBody, receive: Receive, *, is_repeated: bool
    ) -> ASGIResponse:
        if body.stream:
            return await self._streamed(principal, body, is_repeated=is_repeated)
        run_id = self._response_runs.new_id()
        async with self._watch_run.listening(run_id) as woken:
            run, place = await self._response_runs.begin(principal, body, is_repeated=is_repeated, run_id=run_id)
            if not body.background:
                await at_rest(self._watch_run, principal, run.id, receive, announced=run_id, woken=woken)
        return json_response((await self._read(principal, run, place)).view(), headers=run_location(run))

    async def get(self, principal: Principal, response_id: str) -> JsonObject:
        """Raises NOT_FOUND."""
        return (await self._existing(principal, response_id)).view()

    async def stream(self, principal: Principal, response_id: str, *, starting_after: int) -> EventStream:
        """Its events with higher numbers, then new ones. Raises NOT_FOUND."""
        found = await self._existing(principal, response_id)
        place = self._places.take(principal)
        events = ResponseEvents(run=found.run, place=found.place, address=self._address.url)
        frames = self._frames(principal, events, starting_after=starting_after)
        return EventStream(frames, heartbeat_s=self._heartbeat_s, headers=run_location(found.run), place=place)

    async def cancel(self, principal: Principal, response_id: str) -> JsonObject:
        """Raises NOT_FOUND, FORBIDDEN."""
        found = await self._existing(principal, response_id)
        run = await self._cancel_run.execute(CancelRunCommand(principal=principal, run_id=found.run.id))
        return (await self._read(principal, run, found.place)).view()

    async def delete(self, principal: Principal, response_id: str) -> JsonObject:
        """Raises NOT_FOUND, FORBIDDEN, CONFLICT `response_in_use`, `thread_busy`."""
        found = await self._existing(principal, response_id)
        principal.require(Permission.RUNS_START)
        run = found.run
        if await self._is_shared(principal, found):
            detail = (
                f"The thread of {response_id} has more than this response. Delete the thread {run.thread_id} instead."
            )
            raise conflict("response_in_use", detail)
        await self._delete_thread.execute(DeleteThreadCommand(principal=principal, thread_id=run.thread_id))
        return {"id": response_id, "object": "response", "deleted": True}

    async def inputs(self, principal: Principal, response_id: str) -> list[JsonObject]:
        """The input items of a response, oldest first. Raises NOT_FOUND."""
        return input_items(await self._existing(principal, response_id))

    async def _is_shared(self, principal: Principal, response: ResponseEvents) -> bool:
        """Whether the thread has more than the response: it is a conversation of the client's, or
        has other responses, or messages that were added. Messages that came with the run, as its
        history, are of the run's own moment."""
        run = response.run
        if response.place.part or (run.client_request or {}).get("conversation"):
            return True
        if (await self._read(principal, run, Place(run_id=run.id, part=1))).exists:
            return True
        runs = await self._list_runs.execute(principal, RunFilter(thread_id=run.thread_id), PageRequest(limit=2))
        if len(runs.items) > 1 or runs.next_cursor is not None:
            return True
        stored = stored_messages(self._list_messages, principal, run.thread_id)
        return any([message.run_id is None and message.created_at != run.created_at async for message in stored])

    async def _streamed(self, principal: Principal, body: ResponseBody, *, is_repeated: bool) -> EventStream:
        with self._places.taken(principal) as place:
            run, of_run = await self._response_runs.begin(principal, body, is_repeated=is_repeated)
        events = ResponseEvents(run=run, place=of_run, address=self._address.url)
        frames = self._frames(principal, events, starting_after=-1)
        return EventStream(frames, heartbeat_s=self._heartbeat_s, headers=run_location(run), place=place)

    async def _existing(self, principal: Principal, response_id: str) -> ResponseEvents:
        place = place_of(response_id)
        with named("response", response_id):
            run = await self._get_run.execute(principal, place.run_id)
        found = await self._read(principal, run, place)
        if not found.exists or not is_stored(run):
            raise no_response(response_id)
        return found

    async def _read(self, principal: Principal, run: Run, place: Place) -> ResponseEvents:
        """What is stored of the response."""
        events = ResponseEvents(run=run, place=place, address=self._address.url)
        async for batch in stored_events(self._get_run_events, principal, run.id):
            for event in batch:
                for _ in events.of(await told_event(self._get_run, principal, event)):
                    pass
            if events.has_ended:
                break
        return events

    async def _frames(
        self, principal: Principal, events: ResponseEvents, *, starting_after: int
    ) -> AsyncGenerator[bytes, None]:
        """A stream that was cut ends with an error, which has the number after which its client
        reads on."""
        sent = starting_after
        try:
            async for event in self._followed(principal, events):
                number = int(str(event["sequence_number"]))
                if number > sent:
                    yield _frame(event)
                    sent = number
        except Exception as error:  # noqa: BLE001 (logged, and told to the client)
            told = stream_error(events.run.id, error)["error"]
            about: JsonObject = {"code": told["code"], "message": told["message"], "param": told["param"]}
            yield _frame({"type": "error", "sequence_number": sent, **about})

    async def _followed(self, principal: Principal, events: ResponseEvents) -> AsyncIterator[JsonObject]:
        """The events of the response, until it has ended."""
        async with aclosing(self._watch_run.follow(principal, events.run.id)) as followed:
            async for batch in followed:
                for event in batch:
                    for shown in events.of(await told_event(self._get_run, principal, event)):
                        yield shown
                if events.has_ended:
                    return


def _frame(event: JsonObject) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), msgspec.json.encode(event))
