"""Decides about a call before anything is recorded as sent: does the tool exist, do the arguments fit."""

from application.tools import failure_text
from application.tools.ports import SchemaValidator
from application.tools.toolset import Toolset
from domain.errors import ServiceError
from domain.threads.message import ToolUse
from domain.tools.result import ToolResult


class CheckToolCall:
    """Rules: a name outside the toolset is answered, not executed; arguments that are not a JSON object or do not
    fit the
    tool's schema are answered with what is wrong, and never executed as `{}`."""

    def __init__(self, *, schemas: SchemaValidator) -> None:
        self._schemas = schemas

    def refusal(self, use: ToolUse, toolset: Toolset) -> ToolResult | None:
        """Why the call is not executed, as a result for the model; None if it may go ahead."""
        tool = toolset.find(use.name)
        if tool is None:
            return failure_text.unknown_tool(use.name)
        if use.malformed is not None:
            return failure_text.malformed_arguments(use.malformed)
        try:
            violations = self._schemas.violations(tool.parameters, use.params)
        except ServiceError as error:
            return failure_text.invalid_arguments((f"the tool's own schema cannot be used ({error.code})",))
        return failure_text.invalid_arguments(violations) if violations else None
