"""Finding tools by what is said of them."""

import pytest

from domain.ids import ToolCallId
from domain.threads.message import ToolUse
from domain.tools.meta_tools import called_name
from domain.tools.tool import Tool
from domain.tools.tool_index import ToolIndex
from tests.builders import a_tool

TOOLS = {
    "mcp__git__create_issue": "Opens a new ticket.",
    "mcp__git__listOpenIssues": "Shows what is still to be done.",
    "mcp__git__merge": "Joins a branch into another one.",
    "mcp__files__read_file": "Reads a file. Fails for a directory.",
    "mcp__files__write_file": "Writes text into a file, which is created if need be.",
    "mcp__files__S3Bucket": "Lists a bucket.",
    "mcp__clock__now": "The time – die Uhrzeit, für alle Zeitzonen.",
}
INDEX = ToolIndex([a_tool(name, description=text) for name, text in TOOLS.items()])

pytestmark = pytest.mark.requirement("A13")


def found(query: str, limit: int = 10) -> list[str]:
    return [tool.name.removeprefix("mcp__") for tool in INDEX.search(query, limit)]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("create an issue", "git__create_issue"),
        ("list open issues", "git__listOpenIssues"),
        ("listOpenIssues", "git__listOpenIssues"),
        ("merge branches", "git__merge"),
        ("read files", "files__read_file"),
        ("WRITE", "files__write_file"),
        ("s3", "files__S3Bucket"),
        ("zeitzone", "clock__now"),
        ("für", "clock__now"),
        ("mcp__files__read_file", "files__read_file"),
        ("direct", "files__read_file"),
    ],
)
def test_what_fits_best_comes_first(query: str, best: str) -> None:
    assert found(query)[0] == best


def test_a_name_counts_for_more_than_a_mention() -> None:
    tools = [a_tool("mcp__a__zip", description="Packs."), a_tool("mcp__a__list", description="Lists a zip, whatever.")]
    assert [tool.name for tool in ToolIndex(tools[::-1]).search("zip", 5)] == ["mcp__a__zip", "mcp__a__list"]


def test_a_whole_word_counts_for_more_than_a_beginning() -> None:
    tools = [a_tool("mcp__a__x", description="Reports."), a_tool("mcp__a__y", description="Report.")]
    tools += [a_tool("mcp__a__b", description="Reporting.")]
    assert [tool.name[-1] for tool in ToolIndex(tools).search("report", 5)][-1] == "b"


@pytest.mark.parametrize("query", ["", " ", "the of and", "xylophone", "_", "()[]\\", "\0"])
def test_what_says_nothing_or_fits_nothing_finds_nothing(query: str) -> None:
    assert found(query) == []


def test_only_the_best_are_named_and_ties_go_by_name() -> None:
    tools = [a_tool(f"mcp__a__zip_{letter}", description="Packs.") for letter in "dbca"]
    assert [tool.name[-1] for tool in ToolIndex(tools).search("zip", 3)] == ["a", "b", "c"]


def test_no_tools_are_no_find() -> None:
    assert ToolIndex([]).search("zip", 3) == ()


def test_a_description_that_names_everything_does_not_win_everything() -> None:
    everything = " ".join(["create issue merge branch read write file list open time"] * 500)
    greedy: list[Tool] = [a_tool(name, description=text) for name, text in TOOLS.items()]
    index = ToolIndex([*greedy, a_tool("mcp__evil__best", description=everything)])
    for query, best in (("create issue", "git__create_issue"), ("merge branch", "git__merge")):
        assert index.search(query, 1)[0].name == f"mcp__{best}"


def test_the_tool_that_is_meant_is_known_whichever_way_it_is_called() -> None:
    for name, params, meant in (
        ("mcp__a__b", {"name": "c"}, "mcp__a__b"),
        ("call_tool", {"name": "mcp__a__b"}, "mcp__a__b"),
        ("call_tool", {"name": 1}, "call_tool"),
    ):
        assert called_name(ToolUse(id=ToolCallId("call_1"), name=name, params=dict(params))) == meant
