"""Model-facing tool names: `mcp__<server>__<tool>` and `agent__<agent>`, at most 64 characters of
`[A-Za-z0-9_-]`. Model providers limit tool names to 64 characters; MCP allows 1–128 of
`[A-Za-z0-9_.-]` (MCP 2025-11-25, server/tools)."""

import hashlib
import re

MAX_NAME_LENGTH = 64
AGENT_PREFIX = "agent__"
_HASH_LENGTH = 8
_ILLEGAL_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")


def model_facing_name(server_slug: str, tool_name: str) -> str:
    """The model-facing name of `tool_name` of `server_slug`. Deterministic. A shortened or replaced
    name ends in eight hex digits of the original's SHA-256, so that different tools have different
    names. The toolset maps the name back."""
    return _fitting(f"mcp__{server_slug}__{tool_name}")


def is_tool_of(server_slug: str, name: str) -> bool:
    """Whether a model-facing name is one of the server's tools."""
    return name.startswith(f"mcp__{server_slug}__")


def agent_tool_name(agent_name: str) -> str:
    """The model-facing name of an agent, fitted like those of MCP tools."""
    return _fitting(f"{AGENT_PREFIX}{agent_name}")


def _fitting(plain: str) -> str:
    cleaned = _ILLEGAL_CHARACTER.sub("_", plain)
    if cleaned == plain and len(plain) <= MAX_NAME_LENGTH:
        return plain
    digest = hashlib.sha256(plain.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{cleaned[: MAX_NAME_LENGTH - _HASH_LENGTH - 1]}_{digest}"
