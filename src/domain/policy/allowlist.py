"""Tool allowlists: which of its tools an agent may see and call."""

from fnmatch import fnmatchcase

Allowlist = tuple[str, ...] | None


def allows(allowlist: Allowlist, tool_name: str) -> bool:
    """Whether a model-facing name is allowed.

    Entries are names or case-sensitive globs (`mcp__git__*`). None restricts nothing; an empty list
    allows nothing.
    """
    return allowlist is None or any(fnmatchcase(tool_name, entry) for entry in allowlist)
