"""Configuration of MCP clients for the gateway: the file that each client reads, and its content.
Formats are those of the clients' own documentation and source, last compared in November 2026:

- claude-desktop: https://support.claude.com/en/articles/11503834 (its file starts programs only; it
  connects to no URL in it).
- cline: `src/services/mcp/schemas.ts` of cline/cline (a URL without `type` is SSE); the CLI's file:
  https://docs.cline.bot/mcp/mcp-overview.
- cursor: https://cursor.com/docs/mcp (a URL without `type` is Streamable HTTP).
- opencode: https://opencode.ai/v2/docs/mcp-servers (below `mcp.servers`, without `enabled`) and, of
  the version before, https://opencode.ai/v1/docs/mcp-servers (below `mcp`). Without `oauth: false`
  both sign in before they send headers.
- vscode: https://code.visualstudio.com/docs/agents/reference/mcp-configuration (`servers`, `type`
  is required).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from domain.json_value import JsonObject

NAME = "dragoman"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """`file` is where the client looks for its servers, `text` makes the content from URL and
    token."""

    file: str
    text: Callable[[str, str], str]


def _headers(token: str) -> JsonObject:
    return {"Authorization": f"Bearer {token}"}


def _json_of(*path: str, url_key: str = "url", **more: str | bool) -> Callable[[str, str], str]:
    """JSON with the server at `path`, under its name."""

    def text(url: str, token: str) -> str:
        document: JsonObject = {NAME: {**more, url_key: url, "headers": _headers(token)}}
        for key in reversed(path):
            document = {key: document}
        return json.dumps(document, indent=2)

    return text


def _mcp_remote(url: str, token: str) -> str:
    # Some clients break arguments at spaces: the header's value is in the environment.
    address = urlsplit(url)
    insecure = address.scheme == "http" and address.hostname not in _LOOPBACK
    args = [
        "-y",
        "mcp-remote",
        url,
        "--header",
        "Authorization:${AUTH_HEADER}",
        *(["--allow-http"] if insecure else []),
    ]
    server: JsonObject = {"command": "npx", "args": [*args], "env": {"AUTH_HEADER": f"Bearer {token}"}}
    return json.dumps({"mcpServers": {NAME: server}}, indent=2)


def _codex(url: str, token: str) -> str:
    header = json.dumps(f"Bearer {token}")
    return f'[mcp_servers.{NAME}]\nurl = {json.dumps(url)}\nhttp_headers = {{ "Authorization" = {header} }}'


CLIENTS = {
    "claude-code": ClientConfig(file=".mcp.json in the project", text=_json_of("mcpServers", type="http")),
    "claude-desktop": ClientConfig(file="claude_desktop_config.json (Settings, Developer)", text=_mcp_remote),
    "cline": ClientConfig(
        file="cline_mcp_settings.json (MCP Servers, Configure), or ~/.cline/data/settings of its CLI",
        text=_json_of("mcpServers", type="streamableHttp"),
    ),
    "codex": ClientConfig(file="~/.codex/config.toml", text=_codex),
    "cursor": ClientConfig(file=".cursor/mcp.json in the project, or ~/.cursor/mcp.json", text=_json_of("mcpServers")),
    "gemini-cli": ClientConfig(file="~/.gemini/settings.json", text=_json_of("mcpServers", url_key="httpUrl")),
    "mcp-remote": ClientConfig(file="the file of a client that only starts programs", text=_mcp_remote),
    "opencode": ClientConfig(
        file="opencode.json in the project", text=_json_of("mcp", "servers", type="remote", oauth=False)
    ),
    "opencode-v1": ClientConfig(
        file="opencode.json in the project", text=_json_of("mcp", type="remote", enabled=True, oauth=False)
    ),
    "vscode": ClientConfig(file=".vscode/mcp.json in the project", text=_json_of("servers", type="http")),
    "windsurf": ClientConfig(
        file="~/.codeium/windsurf/mcp_config.json", text=_json_of("mcpServers", url_key="serverUrl")
    ),
    "zed": ClientConfig(file="~/.config/zed/settings.json", text=_json_of("context_servers")),
}
