"""What is said of something that does not exist: its name, if that is not long."""

import pytest

from domain.errors import not_found


def test_a_name_is_repeated() -> None:
    error = not_found("MCP server", "files")
    assert (error.code, error.detail) == ("mcp_server_not_found", "There is no MCP server 'files'.")


def test_a_name_is_as_it_was_given_but_for_what_nobody_sees() -> None:
    assert not_found("run", "x'\"<b>é").detail == "There is no run 'x'\"<b>é'."
    assert not_found("run", "a\n\x1b[1m\u202e").detail == "There is no run 'a\\u000a\\u001b[1m\\u202e'."


@pytest.mark.requirement("C6")
def test_megabytes_are_not_repeated() -> None:
    assert len(not_found("resource", "a:" + "%" * 9_000_000).detail) < 400
