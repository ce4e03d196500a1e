"""Messages and tool lists are encoded once, and what is kept is bounded."""

from dataclasses import replace

from domain.threads.message import Message, Role
from domain.threads.provider_items import ProviderItems
from domain.tools.tool import Tool
from infrastructure.llm.wire_cache import Form, MessageCache, ToolListCache
from tests.builders import a_tool
from tests.unit.llm.model_requests import a_user_message


class CountingEncoder:
    def __init__(self, size: int = 10) -> None:
        self.encoded: list[str] = []
        self.forms: list[tuple[Form, ProviderItems | None]] = []
        self._size = size

    def message(self, message: Message, form: Form, items: ProviderItems | None) -> bytes:
        self.encoded.append(message.text)
        self.forms.append((form, items))
        return b"x" * self._size

    def tools(self, tools: tuple[Tool, ...]) -> bytes:
        self.encoded.append(",".join(tool.name for tool in tools))
        return self.encoded[-1].encode()


def test_a_growing_thread_is_encoded_message_by_message() -> None:
    encoder = CountingEncoder()
    cache = MessageCache(encoder.message)
    thread = tuple(a_user_message(str(number), number=number) for number in range(5))
    for length in range(1, 6):
        assert len(cache.encoded(thread[:length])) == length
    assert encoder.encoded == ["0", "1", "2", "3", "4"]


def test_the_least_recently_used_message_goes_first() -> None:
    encoder = CountingEncoder(size=10)
    cache = MessageCache(encoder.message, max_bytes=20)
    a, b, c = (a_user_message(text, number=number) for number, text in enumerate("abc"))
    for message in (a, b, a, c, a, b):
        cache.encoded([message])
    assert encoder.encoded == ["a", "b", "c", "b"]


def test_a_message_larger_than_the_cache_is_sent_but_not_kept() -> None:
    encoder = CountingEncoder(size=100)
    cache = MessageCache(encoder.message, max_bytes=20)
    message = a_user_message("big")
    assert [len(data) for data in cache.encoded([message, message])] == [100, 100]
    assert encoder.encoded == ["big", "big"]


def test_only_messages_with_items_of_the_requests_origin_go_back_as_they_came() -> None:
    encoder = CountingEncoder()
    cache = MessageCache(encoder.message)
    items = ProviderItems(origin="here", data=b"[]")
    question = a_user_message("q", number=0)
    reply = replace(a_user_message("a", number=1), role=Role.ASSISTANT, items=items)
    results = replace(a_user_message("r", number=2), role=Role.TOOL)
    thread = (question, reply, results, a_user_message("more", number=3))
    cache.encoded(thread, origin="here")
    cache.encoded(thread, origin="elsewhere")
    neutral, as_it_came = (Form.NEUTRAL, None), (Form.AS_IT_CAME, items)
    assert encoder.forms == [neutral, as_it_came, as_it_came, neutral, neutral, neutral]


def test_reasoning_goes_back_in_the_tool_loop_after_the_last_message_of_the_user() -> None:
    encoder = CountingEncoder()
    cache = MessageCache(encoder.message)
    items = ProviderItems(origin="here", data=b"[]")
    before, after = (replace(a_user_message("a", number=number), role=Role.ASSISTANT, items=items) for number in (0, 2))
    thread = (before, a_user_message("q", number=1), after)
    for _ in range(2):
        cache.encoded(thread, origin="here", reasoning_in_loop=True)
    assert [form for form, _ in encoder.forms] == [Form.WITHOUT_REASONING, Form.NEUTRAL, Form.AS_IT_CAME]


def test_messages_of_another_origin_have_the_neutral_form_that_the_model_takes() -> None:
    encoder = CountingEncoder()
    cache = MessageCache(encoder.message)
    before, after = (replace(a_user_message("a", number=number), role=Role.ASSISTANT) for number in (0, 2))
    thread = (before, a_user_message("q", number=1), after)
    cache.encoded(thread, neutral=Form.WITH_PLACEHOLDER, reasoning_in_loop=True)
    cache.encoded(thread, neutral=Form.WITH_SIGNATURE, reasoning_in_loop=True)
    cache.encoded(thread)
    assert [form for form, _ in encoder.forms] == [
        *(Form.NEUTRAL, Form.NEUTRAL, Form.WITH_PLACEHOLDER),
        *(Form.WITH_SIGNATURE, Form.WITH_SIGNATURE),
        Form.NEUTRAL,
    ]


def test_a_tool_list_is_encoded_once_and_another_one_is_never_taken_for_it() -> None:
    encoder = CountingEncoder()
    cache = ToolListCache(encoder.tools)
    mine = (a_tool("one"), a_tool("two"))
    assert [cache.encoded(mine) for _ in range(3)] == [b"one,two"] * 3
    assert encoder.encoded == ["one,two"]
    for number in range(500):  # short-lived tuples reuse each other's addresses
        name = f"tool{number}"
        assert cache.encoded((a_tool(name),)) == name.encode()
