"""Every block of the documents is run, or read as what it is, or says why it cannot be."""

from pathlib import Path

import pytest

from tests.documents.pages import RUN, SHAPED, SHOWN, Block, blocks, pages
from tests.documents.shapes import SHAPES, check
from tests.documents.shell import commands, missing

BLOCKS = [block for page in pages() for block in blocks(page)]
NOT_RUN = {
    "README.md": 3,
    "docs/first-run.md": 1,
    "docs/guides/attacks.md": 1,
    "docs/guides/backup.md": 2,
    "docs/guides/deploy.md": 6,
    "docs/guides/elicitation.md": 1,
    "docs/guides/gateway.md": 2,
    "docs/guides/mcp-servers.md": 1,
    "docs/guides/native-tools.md": 1,
    "docs/guides/organizations.md": 1,
    "docs/guides/postgresql.md": 4,
    "docs/guides/secrets-and-auth.md": 3,
    "docs/guides/upgrade.md": 2,
    "examples/README.md": 1,
}
"""How many blocks of each page cannot be run here; the page says why."""


def at(block: Block) -> str:
    return block.place


@pytest.mark.parametrize("block", BLOCKS, ids=at)
def test_a_block_is_run_or_read_or_says_why_not(block: Block) -> None:
    if "not run" in block.marks:
        assert block.marks["not run"], "the mark says why"
    elif block.language in SHAPED:
        assert block.marks.get("shape") in SHAPES, f"`<!-- shape: NAME -->` above it, one of {sorted(SHAPES)}"
    elif block.language in SHOWN:
        assert not any(line.startswith(("$ ", "dragoman ", "curl ", "make ")) for line in block.text.splitlines()), (
            "commands stand in `sh` or `console` blocks, which are run"
        )
    else:
        assert block.language in RUN, "its language is none that is run or read: mark it `<!-- not run: WHY -->`"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in SHAPED], ids=at)
def test_a_yaml_or_json_block_is_what_it_says(block: Block) -> None:
    if "not run" not in block.marks:
        check(block)


def test_the_blocks_that_cannot_be_run_are_known() -> None:
    found: dict[str, int] = {}
    for block in BLOCKS:
        if "not run" in block.marks:
            found[block.page] = found.get(block.page, 0) + 1
    assert found == NOT_RUN


def test_a_file_that_a_block_makes_is_used_by_a_command_after_it() -> None:
    for page in pages():
        of_page = blocks(page)
        for number, block in enumerate(of_page):
            if file := block.marks.get("file"):
                later = [f"{other.text}{other.marks.get('given', '')}" for other in of_page[number + 1 :]]
                name = Path(file).stem
                assert any(name in text for text in later), f"{block.place}: nothing uses {file}"


def a_block(text: str) -> Block:
    return Block(page="page.md", line=1, language="console", text=text)


def test_a_console_block_has_commands_and_what_they_print() -> None:
    [first, second] = commands(a_block("$ one \\\n    --more\nprinted\nand more\n$ two\n"))
    assert (first.text, first.printed) == ("one \\\n    --more", ("printed", "and more"))
    assert (second.text, second.printed) == ("two", ())


@pytest.mark.parametrize(
    ("printed", "lacks"),
    [(("a  b",), None), (("a…",), None), (("c d", "a b"), "a b"), (("a",), "a"), (("a b", "c …"), None)],
)
def test_what_is_printed_is_looked_for_in_order(printed: tuple[str, ...], lacks: str | None) -> None:
    assert missing(printed, "a b\nc d\n") == lacks
