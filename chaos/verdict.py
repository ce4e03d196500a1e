"""What must be true of runs that were killed somewhere and then ended."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.scenario import ANSWER, CALLS, INTERRUPTED, PREFIX, TOKENS, TURNS, UNSAFE, Json

_TOOL_CALLS = len(CALLS) + 1
_SETTLED = ("tool.executed", "tool.failed", "tool.blocked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """What a process left when it was `killed`, or had ended: the stored events as (seq, type), the
    ids of settled calls, the lines of the log."""

    killed: bool
    events: Sequence[tuple[int, str]]
    settled: frozenset[str]
    log: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A run as it is stored in the end."""

    run: Json
    messages: Sequence[Json]
    events: Sequence[Json]
    audit: Sequence[Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How it looks in the end. `model_calls` are all that the organization was charged for."""

    first: Story
    second: Story
    chain: Json
    model_calls: int
    log: Sequence[str]


def complaints(remains: Sequence[Remains], ending: Ending) -> list[str]:
    """Everything that did not hold of runs that several processes executed one after the other."""
    second = ending.second
    return [
        *_outcome(ending),
        *_calls(remains, ending),
        *_events(second),
        *_kept(remains, second),
        *_told_once(second, _TOOL_CALLS),
        *_messages(second),
        *(f"the first run: {complaint}" for complaint in _interrupted(ending.first)),
    ]


def _interrupted(first: Story) -> Iterator[str]:
    """It was cancelled, or lost its call with its worker, and went on before anybody could stop
    it."""
    if first.run["status"] not in ("cancelled", "completed"):
        yield f"it ended {first.run['status']}, {first.run['error']}"
    yield from _events(first)
    asked = [part["id"] for message in first.messages for part in message["content"] if part["type"] == "tool_use"]
    yield from _told_once(first, len(asked))
    results = [part for message in first.messages for part in message["content"] if part["type"] == "tool_result"]
    if [result["tool_id"] for result in results] != asked:
        yield f"{asked} were answered by {results}"


def _outcome(ending: Ending) -> Iterator[str]:
    run = ending.second.run
    if (run["status"], run["output"], run["error"]) != ("completed", ANSWER, None):
        yield f"the run ended {run['status']} with {run['output']!r}, {run['error']}"
    counted = {name: run["usage"][name] for name in ("input_tokens", "output_tokens", "turns", "tool_calls")}
    expected = {**{name: count * TURNS for name, count in TOKENS.items()}, "turns": TURNS, "tool_calls": _TOOL_CALLS}
    if counted != expected:
        yield f"usage is {counted}, not {expected}"
    if ending.model_calls != TURNS + ending.first.run["usage"]["turns"]:
        yield f"{ending.model_calls} model calls were charged"
    if not ending.chain["ok"]:
        yield f"the audit chain is broken: {ending.chain}"


def _calls(remains: Sequence[Remains], ending: Ending) -> Iterator[str]:
    """The tools' own log: what was called, and what was called again."""
    events = (*ending.first.events, *ending.second.events)
    asked = {event["tool_call_id"]: _line(event) for event in events if event["type"] == "tool.started"}
    called = Counter(_called(ending.log))
    for call in (*CALLS, INTERRUPTED):
        unsafe = call.split()[0] in UNSAFE
        if called[call] == 0 and not unsafe:
            yield f"{call} was never called"
        if called[call] > 1 + (0 if unsafe else sum(each.killed for each in remains)):
            yield f"{call} was called {called[call]} times"
    for left in remains:
        settled = {asked[call_id] for call_id in left.settled if call_id in asked}
        if again := settled & set(_called(ending.log[len(left.log) :])):
            yield f"{sorted(again)} were called again although they were settled"
    if unknown := called.keys() - {*CALLS, INTERRUPTED}:
        yield f"nobody asked for {unknown}"


def _line(event: Json) -> str:
    params = event["params"]
    return f"{event['name'].removeprefix(PREFIX)} {params.get('text', params.get('code', ''))}"


def _called(log: Sequence[str]) -> Iterator[str]:
    return (line.removeprefix("called ") for line in log if line.startswith("called "))


def _events(story: Story) -> Iterator[str]:
    events = story.events
    if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
        yield f"the events are numbered {[event['seq'] for event in events]}"
    once = Counter(_identity(event) for event in events if _identity(event) is not None)
    yield from (f"there are {count} events {what}" for what, count in once.items() if count > 1)
    heard = heard_by_a_listener(events)
    for message in story.messages:
        said = "".join(part["text"] for part in message["content"] if part["type"] == "text")
        if message["role"] == "assistant" and heard.pop(message["id"], "") != said:
            yield f"the pieces of {message['id']} do not make its text"
    if heard:
        yield f"messages were begun and never taken back: {sorted(heard)}"


def _kept(remains: Sequence[Remains], story: Story) -> Iterator[str]:
    for left in remains:
        if [(event["seq"], event["type"]) for event in story.events[: len(left.events)]] != list(left.events):
            yield "events that were stored are not what they were"


def _told_once(story: Story, calls: int) -> Iterator[str]:
    """Events and audit trail hold the run's beginning, its end and each call's outcome."""
    settled = {event["tool_call_id"] for event in story.events if event["type"] in _SETTLED}
    if len(settled) != calls:
        yield f"{len(settled)} calls have an event of their outcome"
    entries = Counter(
        ("outcome" if entry["action"] in _SETTLED else entry["action"], entry["resource"]) for entry in story.audit
    )
    yield from (f"the audit trail has {what} {count} times" for what, count in entries.items() if count > 1)
    kinds = Counter(action for action, _ in entries)
    ended = kinds["run.completed"] + kinds["run.cancelled"]
    if (kinds["outcome"], ended) != (calls, 1) or kinds["run.started"] != bool(story.run["attempt"]):
        yield f"the audit trail holds {dict(kinds)}"


def _identity(event: Json) -> tuple[str, str] | None:
    """What may be told of once only."""
    kind = event["type"]
    if kind == "tool.started":
        return kind, event["tool_call_id"]
    if kind in _SETTLED:
        return "outcome", event["tool_call_id"]
    if kind == "message.completed":
        return kind, event["message"]["id"]
    return (kind, "") if kind in ("run.queued", "run.completed", "run.cancelled") else None


def _messages(story: Story) -> Iterator[str]:
    roles = [message["role"] for message in story.messages]
    if roles != ["user", *["assistant", "tool"] * (TURNS - 1), "assistant"]:
        yield f"the messages are {roles}"
    pending: set[str] = set()
    for message in story.messages:
        results = [part["tool_id"] for part in message["content"] if part["type"] == "tool_result"]
        if message["role"] == "tool" and sorted(results) != sorted(pending):
            yield f"{sorted(pending)} were answered by {sorted(results)}"
        pending = {part["id"] for part in message["content"] if part["type"] == "tool_use"}


def heard_by_a_listener(events: Sequence[Json]) -> dict[str, str]:
    """The text of each message put together from its pieces, without those that were taken back."""
    heard: dict[str, str] = {}
    for event in events:
        if event["type"] == "message.delta":
            heard[event["message_id"]] = heard.get(event["message_id"], "") + event["text"]
        elif event["type"] == "message.discarded":
            heard.pop(event["message_id"], None)
    return heard
