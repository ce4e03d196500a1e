"""Adds the tools that a run has by its client to the toolset."""

from dataclasses import replace

from application.tools.tool_search import META_TOOLS
from application.tools.toolset import Toolset
from domain.policy.rules import Verdict
from domain.tools.tool import Tool

_META = frozenset(tool.name for tool in META_TOOLS)


def with_client_tools(toolset: Toolset, given: tuple[Tool, ...]) -> Toolset:
    """The toolset with these tools after all others.

    - Allowlists and policies hold for them as for any tool.
    - A name that another tool has is left out, and so is that of a tool search; `problems` says so.
    """
    if not given:
        return toolset
    added: list[Tool] = []
    denied: list[Tool] = []
    problems: list[str] = []
    for one in given:
        if one.name in _META or toolset.find(one.name) is not None:
            problems.append(f"{one.name}: the name is already taken by another tool")
            continue
        policy = toolset.policies.resolve(one.name)
        if policy.hidden_by is not None:
            problems.append(f"{one.name}: a tool of the client that no allowlist permits")
        elif policy.decision is Verdict.DENY:
            denied.append(one)
        else:
            added.append(one)
    return replace(
        toolset,
        tools=(*toolset.tools, *added),
        denied=(*toolset.denied, *denied),
        problems=(*toolset.problems, *problems),
    )
