"""Failures as the model reads them: never empty, never foreign, one sentence for each kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.mcp.ports import McpFailure, McpFailureKind
from application.tools import failure_text
from application.tools.result_text import FAILURE_LIMIT_BYTES
from domain.tools.result import ToolOutcome, ToolResult, outcome_unknown

OUR_KINDS = [kind for kind in McpFailureKind if kind is not McpFailureKind.SERVER_ERROR]


def mcp_failure(kind: McpFailureKind, detail: str = "detail") -> ToolResult:
    failure = McpFailure(kind, detail, rpc_code=-32000, stderr="password=hunter2")
    return failure_text.mcp_failure(failure, timeout_s=30, reference="call_1")


@pytest.mark.requirement("A4")
def test_an_unknown_tool_is_named_in_the_agreed_words() -> None:
    assert failure_text.unknown_tool("x").text == (
        "A tool with the name x was not found. Only use tools that are available in your given list of tools."
    )


@pytest.mark.requirement("A4")
@given(name=st.text(max_size=400))
def test_the_text_for_an_unknown_tool_is_one_short_line_whatever_the_name(name: str) -> None:
    text = failure_text.unknown_tool(name).text
    assert len(text.splitlines()) == 1
    assert len(text) < 250


@pytest.mark.requirement("A5")
def test_a_missing_binding_has_its_own_words() -> None:
    result = failure_text.missing_binding()
    assert (result.text, result.outcome) == (
        "MCP tool configuration error: missing integration ID",
        ToolOutcome.FAILED,
    )


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("kind", OUR_KINDS)
def test_failures_of_ours_are_a_sentence_with_a_reference(kind: McpFailureKind) -> None:
    result = mcp_failure(kind)
    assert result.text.startswith("MCP tool execution failed: ")
    assert result.text.endswith(" (reference call_1)")
    assert result.error_code == f"mcp_{kind.value}"
    assert "hunter2" not in result.text


SAY_MORE = (McpFailureKind.TOO_LARGE, McpFailureKind.BUSY)


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("kind", [kind for kind in OUR_KINDS if kind not in SAY_MORE])
def test_the_detail_of_a_failure_of_ours_is_not_repeated(kind: McpFailureKind) -> None:
    assert "10.0.0.7" not in mcp_failure(kind, "connect to 10.0.0.7 refused").text


@pytest.mark.requirement("A5", "B11")
def test_a_reply_that_is_too_large_says_its_size() -> None:
    assert "5 MiB" in mcp_failure(McpFailureKind.TOO_LARGE, "The reply has 5 MiB, over the limit of 4 MiB.").text


@pytest.mark.requirement("A5", "B10")
def test_a_server_that_is_busy_says_with_what() -> None:
    assert (
        "60 times per 60 seconds" in mcp_failure(McpFailureKind.BUSY, "It may be called 60 times per 60 seconds.").text
    )


@pytest.mark.requirement("A5", "B10")
@pytest.mark.parametrize(("retry_after_s", "said"), [(0.0, "1 second."), (0.4, "1 second."), (11.2, "12 seconds.")])
def test_a_server_that_is_left_alone_says_for_how_long(retry_after_s: float, said: str) -> None:
    failure = McpFailure(McpFailureKind.NOT_CONNECTED, "10.0.0.7", retry_after_s=retry_after_s)
    result = failure_text.mcp_failure(failure, timeout_s=30, reference="call_1")
    text = f"MCP server not connected. It is tried again in {said} (reference call_1)"
    assert result.text == f"MCP tool execution failed: {text}"


@pytest.mark.requirement("A5", "X5")
def test_a_lost_call_says_what_models_may_know_of_it() -> None:
    failure = McpFailure(McpFailureKind.CONNECTION_LOST, "The task t at 10.0.0.7.", for_model="The task t is lost.")
    result = failure_text.mcp_failure(failure, timeout_s=30, reference="call_1")
    assert result.text == "MCP tool execution failed: The task t is lost. (reference call_1)"


@pytest.mark.requirement("A5", "B14")
def test_the_kinds_say_what_happened() -> None:
    assert "timed out after 30 seconds" in mcp_failure(McpFailureKind.TIMEOUT).text
    assert "MCP server not connected" in mcp_failure(McpFailureKind.NOT_CONNECTED).text
    assert "MCP disabled" in mcp_failure(McpFailureKind.DISABLED).text
    assert "may have taken effect" in mcp_failure(McpFailureKind.CONNECTION_LOST).text


@pytest.mark.requirement("A5")
def test_a_json_rpc_error_is_told_with_its_code_in_the_servers_words() -> None:
    failure = McpFailure(McpFailureKind.SERVER_ERROR, "no\x00 such cursor", rpc_code=-32602)
    result = failure_text.mcp_failure(failure, timeout_s=1, reference="r")
    assert result.text == "MCP tool execution failed: MCP error -32602: no such cursor"


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("said", ["", "  \n", "\x00"])
def test_a_server_that_gives_no_reason_still_has_a_text(said: str) -> None:
    assert failure_text.server_said_error(said).text == "MCP tool execution failed: the server gave no reason"


@pytest.mark.requirement("A5")
@given(said=st.text(min_size=1, max_size=20).map(lambda text: text * FAILURE_LIMIT_BYTES))
def test_what_a_server_says_is_cleaned_and_capped(said: str) -> None:
    text = failure_text.server_said_error(said).text
    assert text.startswith("MCP tool execution failed: ")
    assert len(text.encode()) < FAILURE_LIMIT_BYTES + 200


@pytest.mark.requirement("A9")
def test_arguments_that_do_not_fit_come_with_what_is_wrong() -> None:
    result = failure_text.invalid_arguments(('/limit: "x" is not of type "integer"', "text is missing"))
    assert result.text.splitlines()[1:] == ['- /limit: "x" is not of type "integer"', "- text is missing"]


@pytest.mark.requirement("A9")
def test_malformed_arguments_are_quoted_from_their_beginning() -> None:
    text = failure_text.malformed_arguments('{"code": "' + "x" * 5_000).text
    assert '{"code": "xxx' in text
    assert len(text) < 400


@pytest.mark.requirement("E3")
def test_an_unknown_outcome_says_so() -> None:
    result = outcome_unknown()
    assert (result.outcome, result.error_code) == (ToolOutcome.UNKNOWN, "outcome_unknown")
    assert "unknown" in result.text


@pytest.mark.requirement("A7")
def test_a_call_that_a_limit_forbids_is_blocked_and_names_the_limit() -> None:
    result = failure_text.limit_reached("max_turns")
    assert result.outcome is ToolOutcome.BLOCKED
    assert "max_turns" in result.text


@pytest.mark.requirement("A5")
def test_a_native_tools_empty_message_does_not_become_an_empty_text() -> None:
    assert failure_text.native_failure("code_failed", "").text
