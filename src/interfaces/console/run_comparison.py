"""Two runs side by side: what they were given, what they did step by step, and what came of it,
with the differences."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, cast

from application.agents.ports import AgentName
from domain.ids import AgentId
from domain.runs.events import RunEvent, RunEventType
from domain.runs.run import Run
from domain.threads.message import TextContent
from interfaces.console.pages import pretty, seconds, shown_text, took, usd, word

MAX_WORDS = 500
"""Longer texts are compared as wholes."""
MAX_PAGE_WORDS = 10_000
"""Of both runs; texts after them are compared as wholes."""
MAX_STEPS = 300
"""Of each run; later ones are not compared."""
MAX_CHARACTERS = 20_000
"""More of a step is not shown."""
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_OUTCOMES = {
    RunEventType.TOOL_EXECUTED: "succeeded",
    RunEventType.TOOL_FAILED: "failed",
    RunEventType.TOOL_BLOCKED: "blocked",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value of both runs; `change` says by how much the second is more, for numbers."""

    name: str
    one: str
    other: str
    change: str = ""

    @property
    def differs(self) -> bool:
        return self.one != self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text, and whether the other text lacks it."""

    text: str
    differs: bool


Sides = tuple[tuple[Piece, ...], tuple[Piece, ...]]
"""The pieces of a text of both runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A model call (`name` is empty) or a tool call, with the text that it gave or was given."""

    name: str
    text: str
    outcome: str
    about: str

    @property
    def key(self) -> tuple[str, str]:
        """What steps of two runs must share to be the same step."""
        return (self.name, "" if self.name else "model")


@dataclass(slots=True)
class WordBudget:
    """Words that may still be compared one by one: the time of a comparison grows faster than its
    words."""

    left: int = MAX_PAGE_WORDS

    def takes(self, words: Sequence[str], others: Sequence[str]) -> bool:
        """Whether these may be compared; they are then used up."""
        total = len(words) + len(others)
        if max(len(words), len(others)) > MAX_WORDS or total > self.left:
            return False
        self.left -= total
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """The same step of both runs; None where a run lacks it."""

    one: Step | None
    other: Step | None
    one_text: tuple[Piece, ...]
    other_text: tuple[Piece, ...]

    @property
    def differs(self) -> bool:
        one, other = self.one, self.other
        return one is None or other is None or (one.text, one.outcome) != (other.text, other.outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Texts and steps of two runs. `is_cut`: a run has more than `MAX_STEPS` steps."""

    inputs: Sides
    outputs: Sides
    steps: tuple[StepPair, ...]
    is_cut: bool


def given(one: Run, other: Run, agent_names: Mapping[AgentId, AgentName]) -> tuple[Fact, ...]:
    """What the runs were started with. Settings that neither has are left out."""
    readers: tuple[tuple[str, Callable[[Run], object]], ...] = (
        ("Agent", lambda run: agent_names[run.agent_id].name if run.agent_id in agent_names else run.agent_id),
        ("Version of the agent", lambda run: run.agent_version),
        ("Model", lambda run: run.model),
        ("Instructions of the run", lambda run: run.instructions or "–"),
        ("Tools allowed", lambda run: "–" if run.tool_allowlist is None else ", ".join(run.tool_allowlist) or "none"),
        ("Metadata", lambda run: json.dumps(run.metadata, ensure_ascii=False) if run.metadata else "–"),
        ("Lane", lambda run: run.lane.value),
    )
    facts = [Fact(name=name, one=shown_text(read(one)), other=shown_text(read(other))) for name, read in readers]
    for title, settings in (
        ("Limit", (one.limits, other.limits)),
        ("Setting", (one.model_settings, other.model_settings)),
    ):
        facts += [
            Fact(name=f"{title} {each.name}", one=_stated(values[0]), other=_stated(values[1]))
            for each in fields(settings[0])
            if (values := [getattr(side, each.name) for side in settings]) != [None, None]
        ]
    return tuple(fact for fact in facts if (fact.one, fact.other) != ("–", "–"))


def figures(one: Run, other: Run, unpriced: Iterable[str]) -> tuple[Fact, ...]:
    """How the runs ended, how long they took and what they cost."""
    unknown = set(unpriced)
    first, second = (None if run.id in unknown else float(run.usage.cost_usd) for run in (one, other))
    return (
        Fact(name="State", one=word(one.status.value), other=word(other.status.value)),
        Fact(name="Error", one=_error(one), other=_error(other)),
        _number("Duration", took(one), took(other), seconds),
        _number("Cost", first, second, usd),
        _number("Tokens in", one.usage.input_tokens, other.usage.input_tokens, _count),
        _number("Tokens out", one.usage.output_tokens, other.usage.output_tokens, _count),
        _number("Turns", one.usage.turns, other.usage.turns, _count),
        _number("Tool calls", one.usage.tool_calls, other.usage.tool_calls, _count),
    )


def steps_of(events: Sequence[RunEvent]) -> tuple[Step, ...]:
    """Model calls and tool calls, in the order in which they ended; a tool call with its arguments
    and its result."""
    asked: dict[object, object] = {}
    results: dict[object, str] = {}
    for part in _parts_of_messages(events):
        if part["type"] == "tool_use":
            asked[part["id"]] = part["params"]
        elif part["type"] == "tool_result":
            results[part["tool_id"]] = str(part["result"])
    found: list[Step] = []
    for event in events:
        data = cast(dict[str, Any], event.data)
        if event.type is RunEventType.MESSAGE_COMPLETED and data["message"]["role"] == "assistant":
            found.append(_model_call(data))
        elif event.type in _OUTCOMES:
            call = data["tool_call_id"]
            code = data.get("reason") or (data.get("error") or {}).get("code")
            found.append(
                Step(
                    name=str(data["name"]),
                    text=_cut(f"{pretty(asked.get(call))}\n→ {shown_text(results.get(call, ''))}"),
                    outcome=_OUTCOMES[event.type],
                    about=" · ".join(filter(None, (code, seconds((data.get("duration_ms") or 0) / 1000)))),
                )
            )
    return tuple(found)


def _parts_of_messages(events: Iterable[RunEvent]) -> Iterator[dict[str, Any]]:
    for event in events:
        if event.type is RunEventType.MESSAGE_COMPLETED:
            yield from cast(dict[str, Any], event.data)["message"]["content"]


def compared(one: Run, other: Run, events: Sequence[RunEvent], others: Sequence[RunEvent]) -> Compared:
    """Takes up to seconds of a processor, for a thread."""
    budget = WordBudget()
    inputs = differences(input_text(one), input_text(other), budget)
    outputs = differences(one.output or "", other.output or "", budget)
    sides = steps_of(events), steps_of(others)
    return Compared(
        inputs=inputs,
        outputs=outputs,
        steps=pairs(sides[0][:MAX_STEPS], sides[1][:MAX_STEPS], budget),
        is_cut=any(len(each) > MAX_STEPS for each in sides),
    )


def pairs(one: Sequence[Step], other: Sequence[Step], budget: WordBudget) -> tuple[StepPair, ...]:
    """The steps of both runs, the same ones beside each other."""
    matched = SequenceMatcher(None, [each.key for each in one], [each.key for each in other], autojunk=False)
    return tuple(
        _pair(*sides, budget)
        for _, begin, end, start, stop in matched.get_opcodes()
        for sides in zip_longest(one[begin:end], other[start:stop])
    )


def differences(one: str, other: str, budget: WordBudget) -> Sides:
    """Both texts in pieces, word by word."""
    if one == other:
        return _whole(one, differs=False), _whole(other, differs=False)
    words, others = _WORDS.findall(one), _WORDS.findall(other)
    if not budget.takes(words, others):
        return _whole(one, differs=True), _whole(other, differs=True)
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, begin, end, start, stop in SequenceMatcher(str.isspace, words, others, autojunk=False).get_opcodes():
        left += _whole("".join(words[begin:end]), differs=tag != "equal")
        right += _whole("".join(others[start:stop]), differs=tag != "equal")
    return tuple(left), tuple(right)


def input_text(run: Run) -> str:
    """The texts of the message; other parts are named."""
    return "\n".join(
        shown_text(part.text) if isinstance(part, TextContent) else f"[{part.media_type}]" for part in run.input
    )


def _model_call(data: Mapping[str, Any]) -> Step:
    text = "".join(str(part["text"]) for part in data["message"]["content"] if part["type"] == "text")
    usage = data.get("usage") or {}
    tokens = f"{usage['input_tokens']:,} in, {usage['output_tokens']:,} out" if "input_tokens" in usage else ""
    cost = usage.get("cost_usd")
    about = " · ".join(filter(None, (usage.get("model"), tokens, None if cost is None else usd(float(cost)))))
    return Step(name="", text=_cut(shown_text(text)), outcome="", about=about)


def _pair(one: Step | None, other: Step | None, budget: WordBudget) -> StepPair:
    if one is None or other is None:
        left, right = (_whole(each.text if each else "", differs=False) for each in (one, other))
    else:
        left, right = differences(one.text, other.text, budget)
    return StepPair(one=one, other=other, one_text=left, other_text=right)


def _whole(text: str, *, differs: bool) -> tuple[Piece, ...]:
    return (Piece(text=text, differs=differs),) if text else ()


def _number(name: str, one: float | None, other: float | None, words: Callable[[Any], str]) -> Fact:
    change = ""
    if one and other is not None and one != other:
        change = f"{100 * (other - one) / one:+,.0f} %"
    return Fact(name=name, one=words(one), other=words(other), change=change)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


def _count(value: float) -> str:
    return f"{int(value):,}"


def _error(run: Run) -> str:
    if run.error is not None:
        return f"{run.error.code}: {shown_text(run.error.detail)}"
    return "–" if run.incomplete_reason is None else run.incomplete_reason.explanation


def _stated(value: object) -> str:
    return "–" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
