"""Two runs compared: facts, texts word by word, and steps beside each other."""

from dataclasses import replace
from decimal import Decimal

from application.agents.ports import AgentName
from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from domain.runs.limits import LimitSettings
from domain.runs.usage import Usage
from interfaces.console.run_comparison import (
    MAX_PAGE_WORDS,
    MAX_STEPS,
    MAX_WORDS,
    Piece,
    Step,
    WordBudget,
    compared,
    differences,
    figures,
    given,
    pairs,
    steps_of,
)
from tests.builders import AGENT, RUN, START, a_run

NAMES = {AGENT: AgentName(name="guide", deleted=False)}


def event(type: RunEventType, **data: object) -> RunEvent:
    fields: JsonObject = {**data}  # type: ignore[dict-item]
    return RunEvent(run_id=RUN, seq=1, type=type, at=START, data=fields)


def said(*parts: JsonObject, role: str = "assistant", **more: object) -> RunEvent:
    return event(RunEventType.MESSAGE_COMPLETED, message={"role": role, "content": [*parts]}, **more)


def test_what_differs_is_said_of_settings_and_figures_and_by_how_much() -> None:
    one = a_run()
    other = replace(
        one,
        model="scripted:other",
        limits=LimitSettings(max_turns=3),
        usage=Usage(input_tokens=150, turns=2, cost_usd=Decimal("0.5")),
    )
    one = replace(one, usage=Usage(input_tokens=100, turns=2))
    settings = {fact.name: fact for fact in given(one, other, NAMES)}
    assert (settings["Agent"].one, settings["Agent"].differs) == ("guide", False)
    assert (settings["Model"].other, settings["Model"].differs) == ("scripted:other", True)
    assert (settings["Limit max_turns"].one, settings["Limit max_turns"].other) == ("–", "3")
    assert "Limit max_cost_usd" not in settings  # neither has it
    found = {fact.name: fact for fact in figures(one, other, unpriced=(other.id,))}
    assert (found["Tokens in"].one, found["Tokens in"].other, found["Tokens in"].change) == ("100", "150", "+50 %")
    assert (found["Turns"].differs, found["Turns"].change) == (False, "")
    assert found["Cost"].other == "–"


def test_texts_are_compared_word_by_word_and_very_long_ones_as_wholes() -> None:
    left, right = differences("Pay 24 EUR back.", "Pay 30 EUR back.", WordBudget())
    assert [piece.text for piece in left if piece.differs] == ["24"]
    assert [piece.text for piece in right if piece.differs] == ["30"]
    assert "".join(piece.text for piece in right) == "Pay 30 EUR back."
    assert differences("same", "same", WordBudget())[0] == (Piece(text="same", differs=False),)
    long = "word " * MAX_WORDS
    assert differences(long, f"{long}more", WordBudget())[0] == (Piece(text=long, differs=True),)
    assert differences("", "new", WordBudget()) == ((), (Piece(text="new", differs=True),))


def test_steps_are_model_calls_and_tool_calls_with_what_they_were_given_and_gave() -> None:
    usage = {"model": "m", "input_tokens": 1200, "output_tokens": 30, "cost_usd": 0.25}
    found = steps_of(
        [
            said({"type": "text", "text": "Hello"}, role="user"),
            said(
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_1", "name": "look", "params": {"at": "door"}},
                usage=usage,
            ),
            event(RunEventType.TOOL_EXECUTED, tool_call_id="call_1", name="look", duration_ms=1500),
            said({"type": "tool_result", "tool_id": "call_1", "tool_name": "look", "result": "open"}, role="tool"),
            event(RunEventType.TOOL_BLOCKED, tool_call_id="call_2", name="note", duration_ms=None, reason="denied"),
        ]
    )
    assert [(step.name, step.outcome, step.about) for step in found] == [
        ("", "", "m · 1,200 in, 30 out · $0.2500"),
        ("look", "succeeded", "1.5 s"),
        ("note", "blocked", "denied · 0 ms"),
    ]
    assert found[0].text == "I look."
    assert '"at": "door"' in found[1].text
    assert found[1].text.endswith("→ open")


def test_the_same_steps_stand_beside_each_other_and_a_step_of_one_run_stands_alone() -> None:
    think = Step(name="", text="I look.", outcome="", about="")
    look = Step(name="look", text="{}", outcome="succeeded", about="1 s")
    note = Step(name="note", text="{}", outcome="succeeded", about="1 s")
    found = pairs([think, look, think], [think, note, look, replace(think, text="I see.")], WordBudget())
    assert [(pair.one, pair.other and pair.other.name, pair.differs) for pair in found] == [
        (think, "", False),
        (None, "note", True),
        (look, "look", False),
        (think, "", True),
    ]
    assert [piece.text for piece in found[3].other_text if piece.differs] == ["see"]


def test_a_page_compares_a_bounded_number_of_words_and_steps() -> None:
    run, turns = a_run(), MAX_STEPS + 1
    events, others = (
        [said({"type": "text", "text": f"{word} {'the ' * 40}"}) for _ in range(turns)] for word in ("one", "two")
    )
    found = compared(run, run, events, others)
    assert found.is_cut
    assert len(found.steps) == MAX_STEPS
    of_a_pair = 2 * 82
    marked = [len(pair.one_text) > 1 for pair in found.steps]
    assert marked == [place < MAX_PAGE_WORDS // of_a_pair for place in range(MAX_STEPS)]
    assert found.steps[-1].one_text == (Piece(text=f"one {'the ' * 40}", differs=True),)
    assert not compared(run, run, events[1:], others[1:]).is_cut
