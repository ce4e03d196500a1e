"""Slugs: the names of MCP servers in URLs, agents and tool names."""

import re

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


def is_legal_slug(slug: str) -> bool:
    return _SLUG.fullmatch(slug) is not None
