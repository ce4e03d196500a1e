"""Names of tools as models see them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.mcp.slug import is_legal_slug
from domain.mcp.tool_name import is_legal_mcp_name
from domain.tools.names import agent_tool_name, model_facing_name

SLUGS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,31}", fullmatch=True)
TOOL_NAMES = st.from_regex(r"[A-Za-z0-9_.\-]{1,128}", fullmatch=True)
TOOLS = st.tuples(SLUGS, TOOL_NAMES)
LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")


@pytest.mark.requirement("B6")
@pytest.mark.parametrize(
    ("slug", "tool", "name"),
    [
        ("files", "read_file", "mcp__files__read_file"),
        ("my-clock", "get-time", "mcp__my-clock__get-time"),
        ("s", "a__b", "mcp__s__a__b"),
        ("f" * 32, "t" * 25, f"mcp__{'f' * 32}__{'t' * 25}"),
    ],
)
def test_a_legal_name_that_fits_is_used_as_it_is(slug: str, tool: str, name: str) -> None:
    assert model_facing_name(slug, tool) == name


@pytest.mark.requirement("B6")
@pytest.mark.parametrize(
    ("slug", "tool", "name"),
    [
        ("files", "read.file", "mcp__files__read_file_dcef985e"),
        ("files", "t" * 60, f"mcp__files__{'t' * 43}_190a1607"),
    ],
)
def test_a_name_that_had_to_change_carries_a_digest_and_stays_the_same_from_release_to_release(
    slug: str, tool: str, name: str
) -> None:
    assert model_facing_name(slug, tool) == name


@pytest.mark.requirement("B6")
@given(slug=SLUGS, tool=st.one_of(TOOL_NAMES, st.text(min_size=1)))
def test_a_name_is_always_legal_for_every_model_provider(slug: str, tool: str) -> None:
    assert LEGAL.fullmatch(model_facing_name(slug, tool))


@pytest.mark.requirement("B6")
@given(slug=SLUGS, tool=TOOL_NAMES)
def test_a_name_begins_with_its_server(slug: str, tool: str) -> None:
    assert model_facing_name(slug, tool).startswith(f"mcp__{slug}__")


@pytest.mark.requirement("B6")
@given(tools=st.lists(TOOLS, unique=True, max_size=50))
def test_different_tools_have_different_names(tools: list[tuple[str, str]]) -> None:
    assert len({model_facing_name(slug, tool) for slug, tool in tools}) == len(tools)


@pytest.mark.requirement("B6")
@given(
    slug=SLUGS,
    stem=st.text(alphabet="ab.", min_size=60, max_size=100),
    ends=st.sets(TOOL_NAMES, min_size=2, max_size=9),
)
def test_tools_that_differ_only_after_the_cut_or_in_replaced_characters_have_different_names(
    slug: str, stem: str, ends: set[str]
) -> None:
    tools = {(stem + end)[:128] for end in ends} | {stem.replace(".", "_"), stem.replace(".", "-"), stem}
    assert len({model_facing_name(slug, tool) for tool in tools}) == len(tools)


@pytest.mark.requirement("B7", "B11")
@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("read_file", True),
        ("Read-File.v2", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("read file", False),
        ("read\n", False),
        ("lesen·ü", False),
        ("a/b", False),
    ],
)
def test_which_tool_names_of_servers_may_be_registered(name: str, legal: bool) -> None:
    assert is_legal_mcp_name(name) is legal


@pytest.mark.requirement("B11")
@pytest.mark.parametrize(
    ("slug", "legal"),
    [
        ("files", True),
        ("7-zip", True),
        ("a" * 32, True),
        ("a" * 33, False),
        ("", False),
        ("-files", False),
        ("Files", False),
        ("my_files", False),
        ("files\n", False),
        ("fıles", False),
    ],
)
def test_which_slugs_are_legal(slug: str, legal: bool) -> None:
    assert is_legal_slug(slug) is legal


@pytest.mark.requirement("F5")
def test_agents_keep_their_names_as_tools_and_distinct_ones_stay_distinct() -> None:
    assert agent_tool_name("researcher") == "agent__researcher"
    odd = [agent_tool_name(name) for name in ("my agent", "my_agent", "my.agent", "a" * 80, "a" * 81, "\u00e9")]
    assert len(set(odd)) == len(odd)
    assert all(re.fullmatch(r"agent__[A-Za-z0-9_-]{1,57}", name) for name in odd)
