"""Answers chat requests of the AI SDK: a stream is a view of the events of one run."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta

from litestar.response.base import ASGIResponse

from application.mcp.oauth_client import PublicAddress
from application.runs.ports import RunFilter
from application.runs.queries import GetRunEvents, ListRuns
from application.runs.watch_run import WatchRun
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from application.threads.queries import ListMessages
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from domain.runs.events import RunEvent
from domain.runs.run import Run
from domain.threads.message import Message
from interfaces.http.ai_sdk.chunks import Chunks
from interfaces.http.ai_sdk.messages import conversation, settled
from interfaces.http.ai_sdk.schemas import ChatRequestBody
from interfaces.http.ai_sdk.ui_messages import answer_message, earlier_messages, input_message
from interfaces.http.chats.client_threads import ChatMessageCommand, ChatName, ClientThreads
from interfaces.http.chats.shown import RunShown
from interfaces.http.openai.errors import stream_error
from interfaces.http.runs.answer import Answer, run_location
from interfaces.http.runs.stored_events import stored_events
from interfaces.http.sse import EventStream, data_frame
from interfaces.http.stream_places import StreamPlaces
from interfaces.http.threads.stored_messages import stored_messages

_HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
_DONE = b"data: [DONE]\n\n"
_READ_AGAIN = timedelta(minutes=10)
"""A client that lost its connection reads an answer again that ended meanwhile, so long."""


class AiSdkChats:
    """Rules:
    - The last message of the user starts a run on the chat's thread. A message of the assistant
      with outcomes of calls resumes the run that waits for them.
    - An answer, to where the run ends or waits, is one message with the run's id. It is read again
      from its beginning.
    - A client that leaves harms nothing: the run continues. `stop` cancels it.
    """

    def __init__(
        self,
        *,
        client_threads: ClientThreads,
        watch_run: WatchRun,
        get_run_events: GetRunEvents,
        list_runs: ListRuns,
        list_messages: ListMessages,
        public_address: PublicAddress,
        clock: Clock,
        places: StreamPlaces,
        heartbeat_s: float,
    ) -> None:
        self._threads = client_threads
        self._watch_run = watch_run
        self._get_run_events = get_run_events
        self._list_runs = list_runs
        self._list_messages = list_messages
        self._address = public_address
        self._clock = clock
        self._places = places
        self._heartbeat_s = heartbeat_s

    async def answer(self, principal: Principal, agent: str, body: ChatRequestBody) -> EventStream:
        """Raises as StartRun and ResumeRun."""
        principal.require(Permission.RUNS_START)
        with self._places.taken(principal) as place:
            begun = await self._begin(principal, agent, body)
        frames = self._frames(principal, begun)
        headers = {**_HEADERS, **run_location(begun.run)}
        return EventStream(frames, heartbeat_s=self._heartbeat_s, headers=headers, place=place)

    async def again(self, principal: Principal, agent: str, chat: str) -> ASGIResponse:
        """The newest answer from its beginning; 204 without one, and some time after its end.
        Raises NOT_FOUND."""
        run = await self._threads.newest(principal, _chat(agent, chat))
        if run is None or self._is_over(run):
            return ASGIResponse(status_code=204)
        place = self._places.take(principal)
        frames = self._frames(principal, Answer(run=run))
        return EventStream(frames, heartbeat_s=self._heartbeat_s, headers=dict(_HEADERS), place=place)

    async def messages(self, principal: Principal, agent: str, chat: str) -> list[JsonObject]:
        """The messages of the chat, with those of its newest runs. An answer that has not ended is
        left to its stream. Raises NOT_FOUND."""
        newest = await self._threads.newest(principal, _chat(agent, chat))
        if newest is None:
            return []
        wanted, page = RunFilter(thread_id=newest.thread_id), PageRequest(limit=MAX_PAGE_SIZE)
        runs = (await self._list_runs.execute(principal, wanted, page)).items[::-1]
        told = earlier_messages([message async for message in self._before_runs(principal, newest)])
        for run in runs:
            told.append(input_message(run))
            if run.status.is_terminal:
                told.append(answer_message(run, await self._chunks(principal, run)))
        return told

    async def _before_runs(self, principal: Principal, run: Run) -> AsyncGenerator[Message, None]:
        async with aclosing(stored_messages(self._list_messages, principal, run.thread_id)) as stored:
            async for message in stored:
                if message.run_id is not None:
                    return
                yield message

    async def _chunks(self, principal: Principal, run: Run) -> list[JsonObject]:
        """All chunks of an answer that has ended."""
        shown, chunks = RunShown(run=run), Chunks(run=run, address=self._address.url)
        stored = stored_events(self._get_run_events, principal, run.id)
        return [
            chunk
            async for events in stored
            for event in events
            for item in shown.of(event)
            for chunk in chunks.of(item)
        ]

    async def stop(self, principal: Principal, agent: str, chat: str) -> None:
        """Raises NOT_FOUND, FORBIDDEN."""
        await self._threads.stop(principal, _chat(agent, chat))

    def _is_over(self, run: Run) -> bool:
        return run.finished_at is not None and self._clock.now() - run.finished_at > _READ_AGAIN

    async def _begin(self, principal: Principal, agent: str, body: ChatRequestBody) -> Answer:
        last = body.last()
        if last.role == "assistant":
            return await self._threads.settle(principal, _chat(agent, body.id), settled(last))
        said = conversation([*(message for message in body.messages if message.role == "system"), last])
        return await self._threads.ask(
            ChatMessageCommand(
                principal=principal,
                chat=_chat(agent, body.id),
                message_id=last.id,
                input=said.input,
                history=lambda: conversation(body.messages).history(),
                branches=body.branches,
                instructions=said.instructions,
                client_tools=body.client_tools(),
            )
        )

    async def _frames(self, principal: Principal, answer: Answer) -> AsyncGenerator[bytes, None]:
        """An error ends the stream as its last chunk: without it, the client takes what came for
        the whole answer."""
        shown, chunks = RunShown(run=answer.run), Chunks(run=answer.run, address=self._address.url)
        try:
            yield data_frame(chunks.start())
            async with aclosing(self._watch_run.follow(principal, answer.run.id)) as followed:
                async for events in followed:
                    frames = b"".join(
                        data_frame(chunk) for event in events for chunk in _new(shown, chunks, event, answer)
                    )
                    if frames:
                        yield frames
            changed = await self._threads.pending(principal, shown)
            last = [*(chunk for item in changed for chunk in chunks.of(item)), *chunks.end(shown)]
            yield b"".join(map(data_frame, last)) + _DONE
        except Exception as error:  # noqa: BLE001 (logged, and told to the client)
            told = stream_error(answer.run.id, error)["error"]
            yield data_frame({"type": "error", "errorText": f"{told['code']}: {told['message']}"})


def _chat(agent: str, chat: str) -> ChatName:
    return ChatName("ai-sdk", agent, chat)


def _new(shown: RunShown, chunks: Chunks, event: RunEvent, answer: Answer) -> list[JsonObject]:
    """The chunks for an event. What the client has already is read, too, and left out."""
    added = [chunk for item in shown.of(event) for chunk in chunks.of(item)]
    return added if event.seq > answer.after_seq else []
