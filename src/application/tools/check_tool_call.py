"""Checks a tool call before it is recorded: resolves the tool, validates the arguments, applies
policy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from application.policy.ports import SchemaValidator
from application.tools import failure_text
from application.tools.result_limits import clamped
from application.tools.tool_search import META_TOOLS, found_tools, own_name
from application.tools.toolset import Toolset
from domain.errors import ServiceError
from domain.json_value import JsonObject
from domain.policy.decision import Decision, decide_call, decide_tool
from domain.policy.layers import ToolPolicy
from domain.threads.message import ToolUse
from domain.tools.capabilities import ToolType
from domain.tools.meta_tools import SEARCH_TOOLS
from domain.tools.result import ToolResult
from domain.tools.tool import Tool

_META = {tool.name: tool for tool in META_TOOLS}
_NO_CALLS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """The resolved call: the tool's real name, and the arguments to send.

    - `answer`: the result of a call that is not executed (a refusal, or the result of a search).
    - `decision`: the policy decision; None if policy was not evaluated (unknown tool, invalid
      arguments, search).
    """

    name: str
    params: JsonObject
    tool: Tool | None = None
    answer: ToolResult | None = None
    decision: Decision | None = None


class CheckToolCall:
    """Rules:
    - A call of an unknown tool is answered, not executed.
    - Arguments that are not a JSON object or do not match the schema are answered with the
      violations.
    - A call that policy forbids is answered with the reason.
    - Arguments that request more results than policy allows are lowered.
    - With tool search, `call_tool` is checked as a direct call of the MCP tool that it names.
    """

    def __init__(self, *, schemas: SchemaValidator) -> None:
        self._schemas = schemas

    def check(self, use: ToolUse, toolset: Toolset, calls_so_far: Mapping[str, int] = _NO_CALLS) -> CheckedCall:
        """Check a call. `calls_so_far` counts this run's calls by tool."""
        if not toolset.is_searched or use.name not in _META:
            return self._checked(use.name, use.params, toolset, use.malformed, calls_so_far)
        answer = self.meta_answer(use, toolset)
        if answer is not None:
            return CheckedCall(name=use.name, params=use.params, answer=answer)
        name, arguments = str(use.params["name"]), use.params.get("arguments", {})
        # Other tools are called by their own names, which clients know.
        named = toolset.find(name) or toolset.find_denied(name)
        if named is not None and named.type is not ToolType.MCP_TOOL:
            return CheckedCall(name=name, params=_object(arguments), answer=failure_text.unknown_tool(name))
        return self._checked(name, _object(arguments), toolset, None, calls_so_far)

    def meta_answer(
        self, use: ToolUse, toolset: Toolset, name_of: Callable[[Tool], str] = own_name
    ) -> ToolResult | None:
        """The answer to a call of a meta tool: invalid arguments, or the tools found. None for a
        valid call of `call_tool`."""
        refusal = self._refusal(_META[use.name], use.params, use.malformed)
        if refusal is not None or use.name != SEARCH_TOOLS:
            return refusal
        return found_tools(toolset.index, use.params, name_of)

    def recheck(self, name: str, params: JsonObject, toolset: Toolset, *, calls_so_far: int = 0) -> CheckedCall:
        """Check a call under the tool's own name; one that was recorded before is counted
        already."""
        return self._checked(name, params, toolset, None, {name: calls_so_far})

    def _checked(
        self,
        name: str,
        params: JsonObject,
        toolset: Toolset,
        malformed: str | None,
        calls_so_far: Mapping[str, int],
    ) -> CheckedCall:
        tool = toolset.find(name)
        if tool is None:
            return _absent(name, params, toolset)
        policy = toolset.policy_of(name)
        if policy.max_results is not None and malformed is None:
            params = clamped(params, tool.parameters, policy.max_results)
        answer = self._refusal(tool, params, malformed)
        if answer is not None:
            return CheckedCall(name=name, params=params, tool=tool, answer=answer)
        decision = decide_call(
            policy,
            name,
            params,
            violations=self._policy_violations(policy, params) if policy.constraints else (),
            calls_so_far=calls_so_far.get(name, 0),
        )
        answer = failure_text.blocked_by_policy(decision) if decision.is_blocked else None
        return CheckedCall(name=name, params=params, tool=tool, answer=answer, decision=decision)

    def _refusal(self, tool: Tool, params: JsonObject, malformed: str | None) -> ToolResult | None:
        if malformed is not None:
            return failure_text.malformed_arguments(malformed)
        try:
            violations = self._schemas.violations(tool.parameters, params)
        except ServiceError as error:
            return failure_text.invalid_arguments((f"the tool's own schema cannot be used ({error.code})",))
        return failure_text.invalid_arguments(violations) if violations else None

    def _policy_violations(self, policy: ToolPolicy, params: JsonObject) -> tuple[str, ...]:
        """Violations of the schemas of all layers. An unusable schema rejects every call."""
        found: list[str] = []
        for constraint in policy.constraints:
            try:
                found += self._schemas.violations(constraint.schema, params)
            except ServiceError as error:
                found.append(f"the {constraint.source.layer.value}'s schema cannot be used ({error.code})")
        return tuple(dict.fromkeys(found))


def gone_tool(toolset: Toolset, name: str) -> ToolResult:
    """The answer to a call of a tool outside the toolset: denied by policy, missing because MCP is
    switched off, or unknown."""
    decision = _denial(toolset, name)
    if decision is not None:
        return failure_text.blocked_by_policy(decision)
    return failure_text.mcp_disabled() if toolset.lacks_for_switch(name) else failure_text.unknown_tool(name)


def _denial(toolset: Toolset, name: str) -> Decision | None:
    return None if toolset.find_denied(name) is None else decide_tool(toolset.policy_of(name), name)


def _absent(name: str, params: JsonObject, toolset: Toolset) -> CheckedCall:
    """A tool outside the toolset: denied (the model may know it from before), or unknown."""
    return CheckedCall(
        name=name,
        params=params,
        tool=toolset.find_denied(name),
        answer=gone_tool(toolset, name),
        decision=_denial(toolset, name),
    )


def _object(arguments: object) -> JsonObject:
    return arguments if isinstance(arguments, dict) else {}
