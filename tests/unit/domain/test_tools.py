"""Tools: kinds and capabilities, results as values, allowlists."""

import pytest

from domain.policy.allowlist import Allowlist, allows
from domain.threads.message import ImageContent, ToolResultContent
from domain.tools.capabilities import NATIVE_TYPES, ToolCapability, ToolType, capability_of
from domain.tools.result import ToolOutcome, ToolResult
from tests.builders import a_tool, a_tool_call


@pytest.mark.requirement("A3")
def test_the_kinds_of_tool_are_a_closed_list() -> None:
    assert {kind.value for kind in ToolType} == {
        "code_execution",
        "website_content",
        "send_email",
        "create_calendar_event",
        "internet_search",
        "source_query",
        "mcp_tool",
        "agent",
        "client_tool",
        "client_state",
    }
    assert set(NATIVE_TYPES) == set(ToolType) - {
        ToolType.MCP_TOOL,
        ToolType.AGENT,
        ToolType.CLIENT_TOOL,
        ToolType.CLIENT_STATE,
    }


@pytest.mark.requirement("A3", "D5")
@pytest.mark.parametrize("kind", list(ToolType))
def test_email_calendar_and_client_tools_are_displayed_and_everything_else_is_executed(kind: ToolType) -> None:
    displayed = kind in {ToolType.SEND_EMAIL, ToolType.CREATE_CALENDAR_EVENT, ToolType.CLIENT_TOOL}
    assert capability_of(kind) is (ToolCapability.DISPLAYABLE if displayed else ToolCapability.EXECUTABLE)
    assert a_tool(type=kind).is_displayable is displayed


@pytest.mark.requirement("A5")
@pytest.mark.parametrize(
    ("result", "outcome", "code"),
    [
        (ToolResult.succeeded("ok"), ToolOutcome.SUCCEEDED, None),
        (ToolResult.succeeded(""), ToolOutcome.SUCCEEDED, None),
        (ToolResult.failed("tool_timeout", "too slow"), ToolOutcome.FAILED, "tool_timeout"),
        (ToolResult.blocked("not_allowed", "no"), ToolOutcome.BLOCKED, "not_allowed"),
        (ToolResult.unknown("nobody knows"), ToolOutcome.UNKNOWN, "outcome_unknown"),
    ],
)
def test_only_success_is_no_error_and_only_errors_have_a_code(
    result: ToolResult, outcome: ToolOutcome, code: str | None
) -> None:
    assert (result.outcome, result.error_code) == (outcome, code)
    assert result.is_error is (outcome is not ToolOutcome.SUCCEEDED)


@pytest.mark.requirement("A5")
def test_a_failure_without_a_text_for_the_model_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="text"):
        ToolResult.failed("tool_timeout", "")
    with pytest.raises(ValueError, match="text"):
        ToolResult.unknown("")


@pytest.mark.parametrize("outcome", list(ToolOutcome))
def test_an_outcome_and_its_error_code_must_agree(outcome: ToolOutcome) -> None:
    with pytest.raises(ValueError, match="error code"):
        ToolResult(outcome=outcome, text="x", error_code="some_error" if outcome is ToolOutcome.SUCCEEDED else None)


@pytest.mark.requirement("A5", "A6")
def test_a_result_becomes_the_answer_to_its_call() -> None:
    call = a_tool_call()
    image = ImageContent(media_type="image/png", data="iVBO")
    assert ToolResult.succeeded("ok", (image,)).as_content(call.id, call.name) == ToolResultContent(
        tool_id=call.id, tool_name=call.name, result="ok", is_error=False, images=(image,)
    )
    assert ToolResult.blocked("denied", "no").as_content(call.id, call.name).is_error


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("allowlist", "name", "allowed"),
    [
        (None, "anything", True),
        ((), "anything", False),
        (("website_content",), "website_content", True),
        (("website_content",), "website_contents", False),
        (("mcp__git__*",), "mcp__git__log", True),
        (("mcp__git__*",), "mcp__github__log", False),
        (("mcp__*__read",), "mcp__files__read", True),
        (("MCP__GIT__*",), "mcp__git__log", False),
        (("website_content", "mcp__git__*"), "mcp__git__log", True),
    ],
)
def test_an_absent_allowlist_allows_all_and_an_empty_one_nothing(
    allowlist: Allowlist, name: str, allowed: bool
) -> None:
    assert allows(allowlist, name) is allowed
