"""The state of an MCP server that an approval of a call is bound to."""

import shlex
from dataclasses import dataclass
from typing import cast

from domain.json_value import JsonObject
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPin:
    """`version` counts all changes of the server, installations too. `runs` is what is started or
    connected to, for people."""

    slug: str
    version: int
    runs: str

    @classmethod
    def of(cls, server: McpServer) -> "ServerPin":
        config, installation = server.config, server.installation
        if config.url is not None:
            return cls(slug=config.slug, version=server.version, runs=f"{config.kind} {config.url}")
        source = " ".join(part for part in (config.package or config.path, config.version) if part)
        start = shlex.join(part for part in (config.command, *config.args) if part is not None)
        installed = "" if installation is None else f"(installed: {installation.version})"
        runs = " ".join(part for part in (str(config.kind), source, installed, start) if part)
        return cls(slug=config.slug, version=server.version, runs=runs)

    def as_json(self) -> JsonObject:
        return {"slug": self.slug, "version": self.version, "runs": self.runs}

    @classmethod
    def from_json(cls, data: JsonObject) -> "ServerPin":
        return cls(slug=str(data["slug"]), version=cast(int, data["version"]), runs=str(data["runs"]))
