"""What must be true of a run that was killed somewhere and then completed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.scenario import ANSWER, CALLS, PREFIX, TOKENS, TURNS, UNSAFE, Json

_TOOL_CALLS = len(CALLS) + 1
_SETTLED = ("tool.executed", "tool.failed", "tool.blocked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """What a process left when it was `killed`, or had ended: the stored events as (seq, type), the ids of settled calls, the
    lines of the log."""

    killed: bool
    events: Sequence[tuple[int, str]]
    settled: frozenset[str]
    log: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How it looks in the end. `model_calls` are all that the organization was charged for, in `runs` runs."""

    run: Json
    messages: Sequence[Json]
    events: Sequence[Json]
    audit: Sequence[Json]
    chain: Json
    model_calls: int
    runs: int
    log: Sequence[str]


def complaints(remains: Sequence[Remains], ending: Ending) -> list[str]:
    """Everything that did not hold of a run that several processes executed one after the other."""
    return [
        *_outcome(ending),
        *_calls(remains, ending),
        *_events(remains, ending),
        *_messages(ending),
        *_audit(ending),
    ]


def _outcome(ending: Ending) -> Iterator[str]:
    run = ending.run
    if (run["status"], run["output"], run["error"]) != ("completed", ANSWER, None):
        yield f"the run ended {run['status']} with {run['output']!r}, {run['error']}"
    counted = {name: run["usage"][name] for name in ("input_tokens", "output_tokens", "turns", "tool_calls")}
    expected = {**{name: count * TURNS for name, count in TOKENS.items()}, "turns": TURNS, "tool_calls": _TOOL_CALLS}
    if counted != expected:
        yield f"usage is {counted}, not {expected}"
    if ending.model_calls != TURNS * ending.runs:
        yield f"{ending.model_calls} model calls were charged for {ending.runs} runs"


def _calls(remains: Sequence[Remains], ending: Ending) -> Iterator[str]:
    """The tools' own log: what was called, and what was called again."""
    asked = {event["tool_call_id"]: _line(event) for event in ending.events if event["type"] == "tool.started"}
    called = Counter(_called(ending.log))
    for call in CALLS:
        unsafe = call.split()[0] in UNSAFE
        if called[call] == 0 and not unsafe:
            yield f"{call} was never called"
        if called[call] > 1 + (0 if unsafe else sum(each.killed for each in remains)):
            yield f"{call} was called {called[call]} times"
    for left in remains:
        settled = {asked[call_id] for call_id in left.settled if call_id in asked}
        if again := settled & set(_called(ending.log[len(left.log) :])):
            yield f"{sorted(again)} were called again although they were settled"
    if unknown := called.keys() - set(CALLS):
        yield f"nobody asked for {unknown}"


def _line(event: Json) -> str:
    params = event["params"]
    return f"{event['name'].removeprefix(PREFIX)} {params.get('text', params.get('code', ''))}"


def _called(log: Sequence[str]) -> Iterator[str]:
    return (line.removeprefix("called ") for line in log if line.startswith("called "))


def _events(remains: Sequence[Remains], ending: Ending) -> Iterator[str]:
    events = ending.events
    if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
        yield f"the events are numbered {[event['seq'] for event in events]}"
    for left in remains:
        if [(event["seq"], event["type"]) for event in events[: len(left.events)]] != list(left.events):
            yield "events that were stored are not what they were"
    once = Counter(_identity(event) for event in events if _identity(event) is not None)
    yield from (f"there are {count} events {what}" for what, count in once.items() if count > 1)
    settled = {event["tool_call_id"] for event in events if event["type"] in _SETTLED}
    if len(settled) != _TOOL_CALLS:
        yield f"{len(settled)} calls have an event of their outcome"


def _identity(event: Json) -> tuple[str, str] | None:
    """What may be told of once only."""
    kind = event["type"]
    if kind == "tool.started":
        return kind, event["tool_call_id"]
    if kind in _SETTLED:
        return "outcome", event["tool_call_id"]
    if kind == "message.completed":
        return kind, event["message"]["id"]
    return (kind, "") if kind in ("run.queued", "run.completed") else None


def _messages(ending: Ending) -> Iterator[str]:
    if [message["role"] for message in ending.messages] != ["user", *["assistant", "tool"] * (TURNS - 1), "assistant"]:
        yield f"the messages are {[message['role'] for message in ending.messages]}"
    pending: set[str] = set()
    for message in ending.messages:
        results = [part["tool_id"] for part in message["content"] if part["type"] == "tool_result"]
        if message["role"] == "tool" and sorted(results) != sorted(pending):
            yield f"{sorted(pending)} were answered by {sorted(results)}"
        pending = {part["id"] for part in message["content"] if part["type"] == "tool_use"}
    heard = heard_by_a_listener(ending.events)
    for message in ending.messages:
        said = "".join(part["text"] for part in message["content"] if part["type"] == "text")
        if message["role"] == "assistant" and heard.pop(message["id"], "") != said:
            yield f"the pieces of {message['id']} do not make its text"
    if heard:
        yield f"messages were begun and never taken back: {sorted(heard)}"


def heard_by_a_listener(events: Sequence[Json]) -> dict[str, str]:
    """The text of each message put together from its pieces, without those that were taken back."""
    heard: dict[str, str] = {}
    for event in events:
        if event["type"] == "message.delta":
            heard[event["message_id"]] = heard.get(event["message_id"], "") + event["text"]
        elif event["type"] == "message.discarded":
            heard.pop(event["message_id"], None)
    return heard


def _audit(ending: Ending) -> Iterator[str]:
    entries = Counter(
        ("outcome" if entry["action"] in _SETTLED else entry["action"], entry["resource"]) for entry in ending.audit
    )
    yield from (f"the audit trail has {what} {count} times" for what, count in entries.items() if count > 1)
    kinds = Counter(action for action, _ in entries)
    if (kinds["outcome"], kinds["run.started"], kinds["run.completed"]) != (_TOOL_CALLS, 1, 1):
        yield f"the audit trail holds {dict(kinds)}"
    if not ending.chain["ok"]:
        yield f"the audit chain is broken: {ending.chain}"
