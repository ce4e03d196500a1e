"""What a chat shows of a run, as a pure view of the run's events. Each front-end protocol writes
these items its way."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from domain.runs.output import parsed_output
from domain.runs.run import Run
from interfaces.http.openai.replies import Spending, text_of
from interfaces.http.openai.response_items import arguments_text

_ENDS = frozenset(
    {
        RunEventType.RUN_COMPLETED,
        RunEventType.RUN_INCOMPLETE,
        RunEventType.RUN_FAILED,
        RunEventType.RUN_CANCELLED,
        RunEventType.RUN_HALTED,
    }
)

_PROGRESS = frozenset({"progress", "total", "message"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyBegan:
    """A reply of the model: its text, its reasoning, and its calls follow."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    message_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    message_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEnded:
    """The text and the reasoning of a reply are complete."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyDropped:
    """What was shown of a reply is taken back: it was discarded."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBegan:
    """`by_client`: the client settles the call. An approved call that the client settles begins a
    second time."""

    call_id: str
    name: str
    params: JsonObject
    by_client: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked:
    call_id: str
    use: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalGiven:
    call_id: str
    approved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """The server of a call asks a person."""

    call_id: str
    use: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    call_id: str
    data: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    call_id: str
    text: str
    failed: bool
    denied: bool = False


Shown = (
    ReplyBegan
    | Said
    | Thought
    | ReplyEnded
    | ReplyDropped
    | CallBegan
    | ApprovalAsked
    | ApprovalGiven
    | QuestionAsked
    | Progressed
    | CallEnded
)


def asked_id(use: JsonObject) -> str:
    """Names what a pending call asks: for an approval, its server's question, or its result by the
    client."""
    asks = use.get("approval_id") or cast(JsonObject, use.get("elicitation", {})).get("request_id")
    return str(use["id"]) if asks is None else f"{use['id']}:{asks}"


@dataclass(slots=True)
class RunShown:
    """Reads the events of a run from the first; `of` gives what each adds.

    - A reply that was discarded is taken back.
    - With an output schema, only the last reply is shown, as its object.
    - A call is shown once it begins or waits.

    `rest` is the event by which the run waits or has ended, if it does. `pending` are the calls
    that it waits for.
    """

    run: Run
    rest: RunEvent | None = None
    spent: Spending = field(default_factory=Spending)
    pending: tuple[JsonObject, ...] = ()
    _reply: str | None = None
    _text: list[str] = field(default_factory=list)
    _held: JsonObject | None = None
    _calls: dict[str, CallBegan] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _denied: set[str] = field(default_factory=set)

    def of(self, event: RunEvent) -> Iterator[Shown]:
        """What the event adds."""
        data = event.data
        match event.type:
            case RunEventType.RUN_RESUMED:
                self.rest, self.pending = None, ()
            case RunEventType.MESSAGE_DELTA if self.run.output_schema is None:
                yield from self._say(str(data["message_id"]), str(data["text"]))
            case RunEventType.REASONING_DELTA:
                yield from self._begin(str(data["message_id"]))
                yield Thought(message_id=str(data["message_id"]), text=str(data["text"]))
            case RunEventType.MESSAGE_COMPLETED:
                self.spent.add(data.get("usage"))
                yield from self._completed(cast(JsonObject, data["message"]))
            case RunEventType.MESSAGE_DISCARDED:
                self.spent.add(data.get("usage"))
                if data["message_id"] == self._reply:
                    yield ReplyDropped(message_id=str(self._reply))
                    self._reply = None
            case RunEventType.TOOL_STARTED | RunEventType.TOOL_BLOCKED | RunEventType.TOOL_PROGRESS:
                yield from self._of_call(event)
            case RunEventType.RUN_REQUIRES_ACTION:
                yield from self._say_held()
                self.rest = event
                yield from self.waits(cast("list[JsonObject]", data["pending"]))
            case kind if kind in _ENDS:
                yield from self._ends(event)
            case _:
                pass

    def waits(self, pending: Iterable[JsonObject]) -> Iterator[Shown]:
        """What changes with the calls that the run waits for. No event says that some of them were
        settled or asked for something else: they are those of the stored run."""
        known, self.pending = self.pending, tuple(pending)
        for use in self.pending:
            if use not in known:
                yield from self._waits(use)

    def _of_call(self, event: RunEvent) -> Iterator[Shown]:
        data, call_id = event.data, str(event.data["tool_call_id"])
        if event.type is RunEventType.TOOL_STARTED:
            yield from self._call(call_id, str(data["name"]), cast(JsonObject, data["params"]))
            yield from self._decided(call_id, approved=True)
        elif event.type is RunEventType.TOOL_BLOCKED:
            yield from self._decided(call_id, approved=False)
        else:
            about = {name: data[name] for name in data if name in _PROGRESS}
            yield Progressed(call_id=call_id, data=about)

    # --- replies ---

    def _begin(self, message_id: str) -> Iterator[Shown]:
        if message_id != self._reply:
            self._reply, self._text = message_id, []
            yield ReplyBegan(message_id=message_id)

    def _say(self, message_id: str, text: str) -> Iterator[Shown]:
        if text:
            yield from self._begin(message_id)
            self._text.append(text)
            yield Said(message_id=message_id, text=text)

    def _completed(self, message: JsonObject) -> Iterator[Shown]:
        identifier, role = str(message["id"]), message["role"]
        if role == "assistant" and self.run.output_schema is not None:
            self._held = message
            yield from self._begin(identifier)
        elif role == "assistant":
            yield from self._begin(identifier)
            text, told = text_of(message), "".join(self._text)
            if text.startswith(told):
                yield from self._say(identifier, text[len(told) :])
            yield ReplyEnded(message_id=identifier)
        elif role == "tool":
            for result in cast("list[JsonObject]", message["content"]):
                yield from self._result(result)

    def _say_held(self) -> Iterator[Shown]:
        """The last reply of a run with an output schema."""
        if self._held is None:
            return
        identifier, text = str(self._held["id"]), text_of(self._held)
        found = parsed_output(text).value
        yield from self._say(identifier, text if found is None else arguments_text(found))
        yield ReplyEnded(message_id=identifier)
        self._held = None

    # --- calls ---

    def _call(self, call_id: str, name: str, params: JsonObject, *, by_client: bool = False) -> Iterator[Shown]:
        known = self._calls.get(call_id)
        if known is None or (by_client and not known.by_client):
            begun = CallBegan(call_id=call_id, name=name, params=params, by_client=by_client)
            self._calls[call_id] = begun
            yield begun

    def _decided(self, call_id: str, *, approved: bool) -> Iterator[Shown]:
        if call_id in self._asked:
            self._asked.discard(call_id)
            if not approved:
                self._denied.add(call_id)
            yield ApprovalGiven(call_id=call_id, approved=approved)

    def _result(self, result: JsonObject) -> Iterator[Shown]:
        call_id, failed = str(result["tool_id"]), bool(result["is_error"])
        yield from self._call(call_id, str(result["tool_name"]), {})
        yield from self._decided(call_id, approved=not failed)
        denied = call_id in self._denied
        yield CallEnded(call_id=call_id, text=str(result["result"]), failed=failed, denied=denied)

    # --- waiting and the end ---

    def _waits(self, use: JsonObject) -> Iterator[Shown]:
        call_id, asks, questions = str(use["id"]), "approval_id" in use, "elicitation" in use
        by_client = not (asks or questions)
        if by_client:
            yield from self._decided(call_id, approved=True)
        yield from self._call(call_id, str(use["name"]), cast(JsonObject, use["params"]), by_client=by_client)
        if asks and call_id not in self._asked:
            self._asked.add(call_id)
            yield ApprovalAsked(call_id=call_id, use=use)
        elif questions:
            yield QuestionAsked(call_id=call_id, use=use)

    def _ends(self, event: RunEvent) -> Iterator[Shown]:
        if event.type in (RunEventType.RUN_COMPLETED, RunEventType.RUN_INCOMPLETE):
            yield from self._say_held()
        if self._reply is not None:
            yield ReplyEnded(message_id=self._reply)
        self.rest, self.pending = event, ()
