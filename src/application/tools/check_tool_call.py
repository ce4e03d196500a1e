"""Decides about a call before anything is recorded as sent: which tool is meant, does it exist, do the arguments fit."""

from dataclasses import dataclass

from application.tools import failure_text
from application.tools.ports import SchemaValidator
from application.tools.tool_search import META_TOOLS, found_tools
from application.tools.toolset import Toolset
from domain.errors import ServiceError
from domain.json_value import JsonObject
from domain.threads.message import ToolUse
from domain.tools.capabilities import ToolType
from domain.tools.meta_tools import SEARCH_TOOLS
from domain.tools.result import ToolResult
from domain.tools.tool import Tool

_META = {tool.name: tool for tool in META_TOOLS}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """The call that is meant: the tool's real name and arguments, whichever way it was called. `answer` is there if the
    call is not executed: why it is refused, or what a search has found."""

    name: str
    params: JsonObject
    tool: Tool | None = None
    answer: ToolResult | None = None


class CheckToolCall:
    """Rules: a name outside the toolset is answered, not executed; arguments that are not a JSON object or do not
    fit the tool's schema are answered with what is wrong, and never executed as `{}`; where tools are searched for, a call of
    `call_tool` is a call of the MCP tool it names, and is checked like one that names it directly."""

    def __init__(self, *, schemas: SchemaValidator) -> None:
        self._schemas = schemas

    def check(self, use: ToolUse, toolset: Toolset) -> CheckedCall:
        """What is to become of the call."""
        if not toolset.is_searched or use.name not in _META:
            tool = toolset.find(use.name)
            return self._checked(use.name, use.params, tool, use.malformed)
        answer = self._refusal(_META[use.name], use.params, use.malformed)
        if answer is None and use.name == SEARCH_TOOLS:
            answer = found_tools(toolset.index, use.params)
        if answer is not None:
            return CheckedCall(name=use.name, params=use.params, answer=answer)
        name, arguments = str(use.params["name"]), use.params.get("arguments", {})
        tool = toolset.find(name)
        # Other tools are called by their own name, under which clients know them.
        if tool is not None and tool.type is not ToolType.MCP_TOOL:
            tool = None
        return self._checked(name, arguments if isinstance(arguments, dict) else {}, tool, None)

    def _checked(self, name: str, params: JsonObject, tool: Tool | None, malformed: str | None) -> CheckedCall:
        answer = failure_text.unknown_tool(name) if tool is None else self._refusal(tool, params, malformed)
        return CheckedCall(name=name, params=params, tool=tool, answer=answer)

    def _refusal(self, tool: Tool, params: JsonObject, malformed: str | None) -> ToolResult | None:
        if malformed is not None:
            return failure_text.malformed_arguments(malformed)
        try:
            violations = self._schemas.violations(tool.parameters, params)
        except ServiceError as error:
            return failure_text.invalid_arguments((f"the tool's own schema cannot be used ({error.code})",))
        return failure_text.invalid_arguments(violations) if violations else None
