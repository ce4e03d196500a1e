"""The shapes that one tool call of a run passes are the ones that CONTRIBUTING names."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType

from domain.json_value import JsonObject
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.doubles import call, says
from tests.unit.application.runs.harness import RunHarness

CONTRIBUTING = Path(__file__).parents[4] / "CONTRIBUTING.md"
ARGUMENTS: JsonObject = {"text": "the argument of this call"}
RESULT = "the result of this call"


@contextmanager
def made_shapes() -> Iterator[set[str]]:
    """Names of the dataclasses of domain and application that are made with the arguments or the
    text of the result as a field of their own."""
    names: set[str] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event != "return" or frame.f_code.co_name != "__init__":
            return
        made = frame.f_locals.get("self")
        if is_dataclass(made) and type(made).__module__.startswith(("domain.", "application.")):
            values = [getattr(made, field.name, None) for field in fields(made)]
            if ARGUMENTS in values or RESULT in values:
                names.add(type(made).__name__)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield names
    finally:
        sys.setprofile(before)


async def test_a_tool_call_passes_the_eight_shapes_that_contributing_names() -> None:
    with made_shapes() as shapes:
        echo = InMemoryTool(answer=text_reply(RESULT))
        turns = [ModelTurn(calls=(call("mcp__s__echo", ARGUMENTS),)), says()]
        await RunHarness(turns, servers={"s": InMemoryMcpServer(tools={"echo": echo})}).play()
    text = CONTRIBUTING.read_text(encoding="utf-8")
    (walk,) = re.findall(r"^One tool call passes eight shapes: (.+?)\.\n", text, re.MULTILINE | re.DOTALL)
    named = re.findall(r"`(\w+)`", walk)
    assert len(named) == 8
    # A reply has its text in blocks.
    assert sorted(shapes) == sorted("ContentBlock" if name == "McpReply" else name for name in named)
