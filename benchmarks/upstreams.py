"""The MCP servers that measurements call, by transport and generation."""

import sys
from dataclasses import dataclass

from benchmarks.processes import ROOT

LEGACY, MODERN = "2025-11-25", "2026-07-28"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A server behind the gateway: how it is called in the report, and the counterpart that it
    is."""

    slug: str
    title: str
    counterpart: str | None
    version: str = LEGACY

    def config(self, port: int | None) -> dict[str, object]:
        """How it is registered."""
        limits = {"slug": self.slug, "max_concurrency": 100, "isolation": "shared"}
        if port is None:
            command = [sys.executable, "-m", "benchmarks.counterparts", "mcp-stdio"]
            return {
                **limits,
                "kind": "custom",
                "command": command[0],
                "args": command[1:],
                "env": {"PYTHONPATH": str(ROOT)},
            }
        return {**limits, "kind": "http", "url": f"http://127.0.0.1:{port}/mcp"}


UPSTREAMS = (
    Upstream(slug="modern", title="HTTP 2026-07-28", counterpart="mcp-modern", version=MODERN),
    Upstream(slug="session", title="HTTP 2025-11-25, session", counterpart="mcp-session"),
    Upstream(slug="stdio", title="stdio", counterpart=None),
)
