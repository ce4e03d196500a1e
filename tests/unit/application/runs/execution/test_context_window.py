"""Trimming a request to its budget: whole turns, the newest kept, a prefix that stays."""

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.runs.execution.context_window import IMAGE_BYTES, ContextWindow, message_bytes
from domain.ids import ToolCallId
from domain.threads.message import (
    Content,
    FileContent,
    ImageContent,
    Message,
    Role,
    TextContent,
    ToolResultContent,
    ToolUse,
)
from domain.threads.provider_items import ProviderItems
from tests.builders import a_message


def user(number: int, size: int = 10) -> Message:
    return a_message(number, "u" * size)


def assistant(number: int, size: int = 10, *, calls: int = 0) -> Message:
    uses = tuple(ToolUse(id=ToolCallId(f"{number}.{index}"), name="t", params={}) for index in range(calls))
    return a_message(number, role=Role.ASSISTANT, content=(TextContent(text="a" * size), *uses))


def results(number: int, of: Message, size: int = 10) -> Message:
    answers = tuple(ToolResultContent(tool_id=use.id, tool_name="t", result="r" * size) for use in of.tool_uses)
    return a_message(number, role=Role.TOOL, content=answers)


Shape = list[tuple[str, int]]


def transcript_of(shape: Shape) -> list[Message]:
    """Turns of runs: `tools` is an assistant's message with calls and their results, the others one
    message each."""
    messages: list[Message] = [user(0)]
    for kind, size in shape:
        number = len(messages)
        match kind:
            case "user":
                messages.append(user(number, size))
            case "assistant":
                messages.append(assistant(number, size))
            case _:
                asking = assistant(number, size, calls=2)
                messages += [asking, results(number + 1, asking, size)]
    return messages


SHAPES = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "tools", "tools"]), st.integers(1, 4_000)), max_size=25
)


@pytest.mark.requirement("A2", "A13")
@given(shape=SHAPES, budget=st.integers(10, 6_000), fixed=st.integers(0, 4_000), leading_assistant=st.booleans())
def test_a_trimmed_request_is_well_formed_whatever_the_thread(
    shape: Shape, budget: int, fixed: int, leading_assistant: bool
) -> None:
    messages = ([assistant(999)] if leading_assistant else []) + transcript_of(shape)
    sent = ContextWindow().fit(messages, fixed_bytes=fixed, budget_tokens=budget)
    newest = next(message for message in reversed(messages) if message.role is Role.USER)
    assert newest in sent
    assert sent[0].role is Role.USER
    assert sent[-1] == messages[-1], "the turn under way is never cut"
    assert list(sent) == [message for message in messages if message in sent], "in order, each once"
    asked = [use.id for message in sent for use in message.tool_uses]
    answered = [result.tool_id for message in sent for result in message.tool_results]
    assert asked == answered


@pytest.mark.requirement("A13")
@given(shape=SHAPES, budget=st.integers(500, 6_000))
def test_between_two_cuts_a_request_only_grows_at_its_end(shape: Shape, budget: int) -> None:
    window = ContextWindow()
    transcript: list[Message] = [user(0)]
    before = window.fit(transcript, fixed_bytes=0, budget_tokens=budget)
    for message in transcript_of([("tools" if kind == "user" else kind, size) for kind, size in shape])[1:]:
        transcript.append(message)
        if message.tool_uses:
            continue
        would_fit = sum(map(message_bytes, before)) + sum(
            map(message_bytes, transcript[transcript.index(before[-1]) + 1 :])
        )
        sent = window.fit(transcript, fixed_bytes=0, budget_tokens=budget)
        if would_fit * 0.25 + 1 <= budget:
            assert sent[: len(before)] == before
        before = sent


@pytest.mark.requirement("A13")
def test_a_cut_goes_down_to_three_quarters_of_the_budget() -> None:
    messages = transcript_of([("tools", 1_000)] * 20)
    window = ContextWindow()
    budget = 10_000
    for end in range(1, len(messages) + 1, 2):
        sent = window.fit(messages[:end], fixed_bytes=100, budget_tokens=budget)
        estimate = window.estimate(fixed_bytes=100)
        assert estimate <= budget
        if len(sent) < end:
            assert budget * 0.6 < estimate <= budget * 0.75 + 1
            return
    raise AssertionError("nothing was cut")


def test_the_newest_user_message_leads_the_turns_that_are_left() -> None:
    messages = transcript_of([("tools", 2_000)] * 10)
    sent = ContextWindow().fit(messages, fixed_bytes=0, budget_tokens=2_500)
    assert sent[0] == messages[0]
    assert sent[1] == messages[len(messages) - len(sent) + 1] != messages[1]
    assert sent[1].role is Role.ASSISTANT


def test_a_cut_never_begins_with_an_assistant_turn_of_an_earlier_run() -> None:
    messages = [user(0, 4_000), assistant(1), user(2), assistant(3), user(4)]
    sent = ContextWindow().fit(messages, fixed_bytes=0, budget_tokens=500)
    assert sent == tuple(messages[2:])


@pytest.mark.requirement("A13")
def test_the_estimate_learns_from_what_the_provider_counts() -> None:
    window = ContextWindow()
    messages = [user(0, 4_000)]
    window.fit(messages, fixed_bytes=1_000, budget_tokens=100_000)
    first = window.estimate(fixed_bytes=1_000)
    window.correct(fixed_bytes=1_000, reported_tokens=2_500)
    assert first == pytest.approx(1_255, abs=2)
    assert window.estimate(fixed_bytes=1_000) == pytest.approx(2_500, abs=2)


@pytest.mark.parametrize("reported", [0, -1])
def test_a_provider_that_counts_nothing_teaches_nothing(reported: int) -> None:
    window = ContextWindow()
    window.fit([user(0, 4_000)], fixed_bytes=0, budget_tokens=100_000)
    before = window.estimate(fixed_bytes=0)
    window.correct(fixed_bytes=0, reported_tokens=reported)
    assert window.estimate(fixed_bytes=0) == before


def test_a_nonsensical_count_cannot_make_the_window_useless() -> None:
    window = ContextWindow()
    window.fit([user(0, 4_000)], fixed_bytes=0, budget_tokens=100_000)
    window.correct(fixed_bytes=0, reported_tokens=10_000_000)
    assert window.estimate(fixed_bytes=0) <= 4_100


def test_an_image_counts_for_what_providers_bill_and_not_for_its_bytes() -> None:
    image = ImageContent(media_type="image/png", data="x" * 1_000_000)
    assert message_bytes(a_message(1, content=(image,))) < IMAGE_BYTES + 100


def test_measuring_again_looks_at_new_messages_only() -> None:
    class Counting(list[Message]):
        reads = 0

        def __getitem__(self, index):  # type: ignore[no-untyped-def]  # an index or a slice
            Counting.reads += not isinstance(index, slice)
            return super().__getitem__(index)

    transcript = Counting(transcript_of([("tools", 10)] * 200))
    window = ContextWindow()
    window.fit(transcript, fixed_bytes=0, budget_tokens=10**6)
    Counting.reads = 0
    transcript.append(user(999))
    window.fit(transcript, fixed_bytes=0, budget_tokens=10**6)
    assert Counting.reads < 10


@pytest.mark.requirement("H1", "A13")
def test_a_message_has_the_size_of_its_items_if_they_are_larger() -> None:
    plain = assistant(1, 100, calls=1)
    small, large = (ProviderItems(origin="acme", data=b"x" * size) for size in (10, 5_000))
    assert message_bytes(replace(plain, items=small)) == message_bytes(plain)
    assert message_bytes(replace(plain, items=large)) == 5_000


@pytest.mark.requirement("A13", "H5")
@pytest.mark.parametrize(
    ("media_type", "size", "estimate"),
    [
        ("application/pdf", 100, IMAGE_BYTES),
        ("application/pdf", 800_000, 100_000),
        ("application/pdf", 12_000_000, 200 * IMAGE_BYTES),
        ("audio/wav", 480_000, 5_000),
        ("text/csv", 90_000, 90_200),
        ("application/zip", 900_000, 200),
    ],
)
def test_a_file_is_estimated_by_what_a_model_reads_of_it(media_type: str, size: int, estimate: int) -> None:
    file = FileContent(media_type=media_type, data=base64.b64encode(bytes(size)).decode())
    plain = a_message(1, content=(TextContent(text="Read."),))
    assert message_bytes(replace(plain, content=(*plain.content, file))) - message_bytes(plain) == estimate
    result = ToolResultContent(tool_id=ToolCallId("1"), tool_name="t", result="")
    answered = a_message(1, role=Role.TOOL, content=(result,))
    attached = replace(answered, content=(replace(result, files=(file,)),))
    assert message_bytes(attached) - message_bytes(answered) == estimate


PICTURE = ImageContent(media_type="image/png", data="A" * 80_000)
REPORT = FileContent(media_type="application/zip", name="report.zip", data="A" * 80_000)


def a_result(*, images: tuple[ImageContent, ...] = (), files: tuple[FileContent, ...] = ()) -> ToolResultContent:
    return ToolResultContent(tool_id=ToolCallId("tc_1"), tool_name="report", result="", images=images, files=files)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("part", [PICTURE, REPORT, a_result(images=(PICTURE,)), a_result(files=(REPORT,))])
def test_attachments_of_messages_and_of_tool_results_are_held_with_all_their_bytes(part: Content) -> None:
    window = ContextWindow()
    window.measure([a_message(content=(part,))])
    assert 80_000 <= window.held_bytes <= 90_000


@pytest.mark.requirement("C6")
def test_a_growing_transcript_is_held_with_the_items_of_providers() -> None:
    window = ContextWindow()
    transcript = [a_message(1, text="x" * 300)]
    window.measure(transcript)
    assert 300 <= window.held_bytes < 400
    items = ProviderItems(origin="o", data=b"x" * 40_000)
    transcript.append(replace(a_message(2, content=(TextContent(text="Hi."),)), items=items))
    window.measure(transcript)
    window.measure(transcript)
    assert 40_300 <= window.held_bytes < 40_500
