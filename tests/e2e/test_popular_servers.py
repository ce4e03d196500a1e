"""Twenty-five servers that many people use, installed from the registries as they are today, under
the confinement that a service has by default: each is listed, and one of its tools is called
through the gateway.

`DRAGOMAN_TEST_POPULAR_SERVERS=1` runs them: they are gigabytes of other people's packages, and
change by the week.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.e2e.processes import until
from tests.e2e.service import Json, Service, serving

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        "DRAGOMAN_TEST_POPULAR_SERVERS" not in os.environ, reason="opt in with DRAGOMAN_TEST_POPULAR_SERVERS=1"
    ),
]
INSTALLATION_S = 400


@dataclass(frozen=True, kw_only=True)
class Popular:
    """A package, what it is started with, and a tool of it with arguments. `fails` allows the tool
    to end with an error of the server's: it wants the internet or an account, and says so
    itself."""

    package: str
    tool: str
    params: Json = field(default_factory=dict)
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    command: str | None = None
    fails: bool = False


NPM = (
    Popular(package="@modelcontextprotocol/server-everything", tool="echo", params={"message": "hello"}),
    Popular(package="@modelcontextprotocol/server-memory", tool="read_graph"),
    Popular(package="@modelcontextprotocol/server-filesystem", tool="list_allowed_directories", args=(".",)),
    Popular(
        package="@modelcontextprotocol/server-sequential-thinking",
        tool="sequentialthinking",
        params={"thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
    ),
    Popular(
        package="@upstash/context7-mcp",
        tool="resolve-library-id",
        params={"libraryName": "x", "query": "x"},
        fails=True,
    ),
    Popular(package="@playwright/mcp", tool="browser_close", args=("--headless", "--no-sandbox"), fails=True),
    Popular(package="chrome-devtools-mcp", tool="list_pages", args=("--headless", "--isolated"), fails=True),
    Popular(package="tavily-mcp", tool="tavily_search", params={"query": "x"}, env={"TAVILY_API_KEY": "x"}, fails=True),
    Popular(
        package="exa-mcp-server", tool="web_search_exa", params={"query": "x"}, env={"EXA_API_KEY": "x"}, fails=True
    ),
    Popular(
        package="firecrawl-mcp",
        tool="firecrawl_scrape",
        params={"url": "http://127.0.0.1:9/"},
        env={"FIRECRAWL_API_KEY": "fc-x"},
        fails=True,
    ),
    Popular(package="@notionhq/notion-mcp-server", tool="API-get-self", env={"NOTION_TOKEN": "x"}, fails=True),
    Popular(package="mongodb-mcp-server", tool="list-databases", fails=True),
    Popular(package="@wonderwhy-er/desktop-commander", tool="get_config"),
    Popular(package="mcp-server-kubernetes", tool="ping", fails=True),
    Popular(package="@browsermcp/mcp", tool="browser_snapshot", fails=True),
)
PYTHON = (
    Popular(package="mcp-server-time", tool="get_current_time", params={"timezone": "UTC"}),
    Popular(package="mcp-server-fetch", tool="fetch", params={"url": "http://127.0.0.1:9/"}, fails=True),
    Popular(package="mcp-server-git", tool="git_status", params={"repo_path": "."}, fails=True),
    Popular(package="mcp-server-sqlite mcp<2", tool="list_tables", args=("--db-path", "data.db")),
    Popular(package="duckduckgo-mcp-server", tool="search", params={"query": "x"}, fails=True),
    Popular(
        package="awslabs.aws-documentation-mcp-server",
        tool="search_documentation",
        params={"search_phrase": "x"},
        fails=True,
    ),
    Popular(package="markitdown-mcp", tool="convert_to_markdown", params={"uri": "data:text/plain,hello"}),
    Popular(package="arxiv-mcp-server", tool="list_papers"),
    Popular(
        package="excel-mcp-server",
        tool="create_workbook",
        args=("stdio",),
        params={"filepath": "book.xlsx"},
        fails=True,
    ),
    Popular(
        package="mcp-atlassian",
        tool="jira_get_issue",
        params={"issue_key": "X-1"},
        env={"JIRA_URL": "http://127.0.0.1:9", "JIRA_PERSONAL_TOKEN": "x"},
        fails=True,
    ),
)
SERVERS = [
    pytest.param(kind, server, id=server.package.split()[0].rpartition("/")[2])
    for kind, servers in (("npm", NPM), ("python", PYTHON))
    for server in servers
]


@pytest.mark.requirement("S1", "B2")
@pytest.mark.parametrize(("kind", "popular"), SERVERS)
def test_a_popular_server_installs_is_listed_and_called_while_confined(
    tmp_path: Path, kind: str, popular: Popular
) -> None:
    with serving(tmp_path / "home", DRAGOMAN_MCP_SANDBOX="auto") as service:
        settings = {"args": list(popular.args), "env": popular.env}
        if popular.command is not None:
            settings["command"] = popular.command
        service.call("POST", "/mcp-servers", {"slug": "it", "kind": kind, "package": popular.package, **settings})
        install(service)
        tested = service.call("POST", "/mcp-servers/it/test")
        assert tested["ok"], tested["error"]
        assert popular.tool in {tool["name"] for tool in tested["tools"]}
        result = called(service, f"mcp__it__{popular.tool}", popular.params)
        assert popular.fails or not result.get("isError"), result
        assert "not connected" not in str(result)


def install(service: Service) -> None:
    """Install the server. Fails with the installer's last words."""
    service.call("POST", "/mcp-servers/it/install", expect=202)
    until(
        lambda: service.call("GET", "/mcp-servers/it/status")["state"] != "installing", INSTALLATION_S, "installation"
    )
    status = service.call("GET", "/mcp-servers/it/status")
    assert status["installed_version"], status


def called(service: Service, tool: str, params: Json) -> Json:
    """The result of a call through the gateway."""
    service.agent("caller", "scripted:hello.yaml", mcp_servers=["it"])
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": params}}
    headers = {**service.headers, "Accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{service.url}/mcp?agent=caller", json=message, headers=headers, timeout=120, trust_env=False)
    assert answer.status_code == 200, answer.text
    # A stream where the server says something in the middle of the call; its last event is the
    # answer.
    is_stream = answer.headers["content-type"].startswith("text/event-stream")
    last = [line for line in answer.text.splitlines() if line.startswith("data:")][-1][5:] if is_stream else answer.text
    return dict(json.loads(last)["result"])
