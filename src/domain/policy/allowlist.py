"""Tool allowlists: which of the tools an agent lists it may see and call."""

from fnmatch import fnmatchcase

Allowlist = tuple[str, ...] | None


def allows(allowlist: Allowlist, tool_name: str) -> bool:
    """Whether a model-facing name is allowed. None restricts nothing, an empty list allows nothing; entries are
    names or
    globs (`mcp__git__*`), matched with case."""
    return allowlist is None or any(fnmatchcase(tool_name, entry) for entry in allowlist)
