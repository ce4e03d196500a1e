"""Texts of a million characters that made a reader of them quadratic: each is read in linear
time."""

from collections.abc import Callable

import pytest

from application.mcp.client_entries import read_entry
from application.system.event_stream import EventStream
from domain.runs.repeated_failure import repeatedly_failing_tool
from domain.threads.message import Role, ToolResultContent
from domain.workflows.templates import placeholders, rendered_text
from infrastructure.extraction.decoding import decoded
from infrastructure.llm.script_template import compile_template
from infrastructure.mcp.oauth.challenge import read_challenge
from infrastructure.mcp.transports.stdio_framing import read_line
from tests.builders import RUN, a_message, a_tool_call
from tests.processor_time import processor_time

MILLION = 1_000_000
BOUND_S = 3.0
"""Time on the processor, many times what is needed; quadratic readers took minutes."""


def filled(unit: str, before: str = "", after: str = "") -> str:
    """A million characters of `unit`."""
    return before + unit * (MILLION // len(unit)) + after


@pytest.mark.requirement("F4")
@pytest.mark.parametrize(
    "text",
    [
        filled("{"),
        filled("{{ "),
        filled("{{a"),
        filled("\\{{"),
        filled("{{a}}"),
        filled("{{\\"),
        filled("}"),
        filled(" ", "{{a", "x}}"),
        filled(" x", "{{a", "}}"),
        filled("a", "{{", "!}}"),
        filled("{{}}"),
    ],
    ids=lambda text: text[:6],
)
def test_braces_in_a_template_take_linear_time(text: str) -> None:
    with processor_time(BOUND_S):
        list(placeholders(text))
    with processor_time(BOUND_S):
        rendered_text(text, {})


def failed_with(text: str) -> None:
    result = ToolResultContent(tool_id=a_tool_call(0, turn=1).id, tool_name="read", result=text, is_error=True)
    repeatedly_failing_tool([a_message(1), a_message(2, run_id=RUN, role=Role.TOOL, content=(result,))], RUN)


def entry_with(text: str) -> None:
    read_entry("slug", {"command": "server", "args": [text], "env": {"A": text}})


def streamed(text: str) -> None:
    stream = EventStream(1_000)
    for start in range(0, MILLION, 65_536):
        stream.feed(text[start : start + 65_536].encode())
    stream.feed(b"\n\n")


def as_html(text: str) -> None:
    decoded(text.encode(), None, is_html=True)


def line(text: str) -> None:
    read_line(text.encode())


READERS: list[tuple[Callable[[str], object], str]] = [
    (failed_with, filled("(reference ")),
    (failed_with, filled("a", "(reference ")),
    (entry_with, filled("${")),
    (lambda text: read_challenge([text]), filled("a", "Bearer ")),
    (lambda text: read_challenge([text]), filled('a="\\"', "Bearer ")),
    (streamed, filled("a\n")),
    (streamed, filled(":\r")),
    (as_html, filled(" ", "<meta charset=", ";")),
    (as_html, filled("<meta charset= ")),
    (line, '{"result":[' + filled(',"a":1') + "x"),
    (line, filled(',"\\')),
]


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(("read", "text"), READERS, ids=range(len(READERS)))
def test_what_users_models_and_servers_write_is_read_in_linear_time(read: Callable[[str], object], text: str) -> None:
    with processor_time(BOUND_S):
        read(text)


def test_scripts_are_compiled_in_linear_time() -> None:
    with processor_time(BOUND_S):
        assert compile_template(filled("{")).parts == (filled("{"),)
