"""Every block of the documents is run, or read as what it is, or says why it cannot be."""

import re
from pathlib import Path

import pytest

from tests.documents.pages import BEGINNINGS, ROOT, RUN, SHAPED, SHOWN, Block, blocks, pages
from tests.documents.reading import Ids, commands, own, unread
from tests.documents.shapes import SHAPES, check

_COMMENT = re.compile(r"<!-- .*?-->", re.DOTALL)
_MARK = re.compile(r"<!-- (not run: .+|serves|exits \d+|file: \S+|shape: [^:]+|figures|end|written by .+) ?-->")
BLOCKS = [block for page in pages() for block in blocks(page)]
NOT_RUN = {
    "README.md": 3,
    "docs/first-run.md": 1,
    "docs/guides/a2a.md": 2,
    "docs/guides/accounts.md": 6,
    "docs/guides/ag-ui.md": 1,
    "docs/guides/ai-sdk.md": 2,
    "docs/guides/attacks.md": 1,
    "docs/guides/backup.md": 2,
    "docs/guides/confinement.md": 1,
    "docs/guides/deploy.md": 6,
    "docs/guides/gateway.md": 3,
    "docs/guides/gateway-oauth.md": 1,
    "docs/guides/impersonation.md": 2,
    "docs/guides/kubernetes.md": 4,
    "docs/guides/limits-and-budgets.md": 1,
    "docs/guides/mcp-servers.md": 2,
    "docs/guides/native-tools.md": 1,
    "docs/guides/openai.md": 3,
    "docs/guides/organizations.md": 2,
    "docs/guides/postgresql.md": 4,
    "docs/guides/retention.md": 2,
    "docs/guides/secrets-and-auth.md": 5,
    "docs/guides/sign-in.md": 7,
    "docs/guides/structured-output.md": 1,
    "docs/guides/upgrade.md": 2,
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


def test_a_file_that_a_block_makes_is_named_and_used_by_its_page() -> None:
    for page in pages():
        of_page = blocks(page)
        for number, block in enumerate(of_page):
            if file := block.marks.get("file"):
                name = Path(file).stem
                others = (*of_page[:number], *of_page[number + 1 :])
                assert any(name in other.text for other in others), f"{block.place}: nothing uses {file}"
                assert file in _shown(block.above), f"{block.place}: the page does not say to save it as {file}"


def test_how_a_command_ends_is_said_where_readers_see_it() -> None:
    for page in pages():
        text = _shown((ROOT / page).read_text(encoding="utf-8"))
        for block in blocks(page):
            if status := block.marks.get("exits"):
                assert f"with {status}" in text, f"{block.place}: the page does not say that it ends with {status}"


@pytest.mark.requirement("U3")
@pytest.mark.parametrize("page", [page for page in pages() if any(block.runs for block in blocks(page))])
def test_nothing_that_is_run_is_hidden_in_a_comment(page: str) -> None:
    kept = _COMMENT.findall((ROOT / page).read_text(encoding="utf-8"))
    unknown = [comment for comment in kept if not _MARK.fullmatch(comment)]
    assert not unknown, "comments have marks, and marks have no commands (tests/documents/pages.py)"


@pytest.mark.requirement("U3")
@pytest.mark.parametrize("page", [page for page in pages() if any(block.runs for block in blocks(page))])
def test_a_page_begins_with_what_its_reader_needs(page: str) -> None:
    if page not in BEGINNINGS:
        first = next(block for block in blocks(page) if block.runs)
        assert "**Before you start**" in first.above, "it says what has to be there, before its first command"
        assert "first-run.md" in first.above


def _shown(text: str) -> str:
    return _COMMENT.sub("", text)


def a_block(text: str) -> Block:
    return Block(page="page.md", line=1, section="", above="", language="console", text=text)


def test_a_console_block_has_commands_and_what_they_print() -> None:
    [first, second] = commands(a_block("$ one \\\n    --more\nprinted\nand more\n$ two\n"))
    assert (first.text, first.printed) == ("one \\\n    --more", ("printed", "and more"))
    assert (second.text, second.printed) == ("two", ())


@pytest.mark.parametrize(
    ("printed", "lacks"),
    [(("a  b",), None), (("a…",), None), (("c d", "a b"), "a b"), (("a",), "a"), (("a b", "c …"), None)],
)
def test_what_is_printed_is_looked_for_in_order(printed: tuple[str, ...], lacks: str | None) -> None:
    assert unread(printed, "a b\nc d\n", {}) == lacks


def test_an_id_is_the_one_that_was_printed_where_the_page_has_it_first() -> None:
    ids: Ids = {}
    assert unread(["apr_0123 waits"], "apr_9 rests\napr_8 waits\n", ids) is None
    assert own("decide apr_0123", ids) == "decide apr_8"
    assert unread(["apr_0123 waits"], "apr_9 waits\n", ids) == "apr_0123 waits"
    with pytest.raises(AssertionError, match="apr_0124"):
        own("decide apr_0124", ids)
