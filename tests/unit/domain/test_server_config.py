"""What an MCP server's configuration must be."""

from dataclasses import replace
from typing import TypedDict

import pytest

from domain.errors import ErrorKind, ServiceError
from domain.mcp.behavior import ElicitationPolicy, PassingPolicy
from domain.mcp.declared_tool import MAX_DECLARED_TOOLS, MAX_DESCRIPTION, MAX_SCHEMA, DeclaredTool
from domain.mcp.server import Isolation, McpServerConfig, McpServerKind, default_isolation

REMOTE = [McpServerKind.SSE, McpServerKind.HTTP, McpServerKind.A2A]


class Numbers(TypedDict, total=False):
    timeout_s: float
    idle_timeout_s: float
    max_response_bytes: int
    max_concurrency: int


def paths(refused: pytest.ExceptionInfo[ServiceError]) -> list[str]:
    assert (refused.value.code, refused.value.kind) == ("mcp_server_invalid", ErrorKind.INVALID)
    return [violation.path for violation in refused.value.violations]


@pytest.mark.requirement("B1")
def test_a_custom_server_is_a_command_with_arguments_and_environment() -> None:
    config = McpServerConfig(
        slug="files", kind=McpServerKind.CUSTOM, command="python3", args=("-m", "files"), env={"ROOT": "/srv"}
    )
    assert not config.kind.is_remote


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("kind", REMOTE)
@pytest.mark.parametrize("url", ["http://localhost:8000/mcp", "https://mcp.example.org/sse"])
def test_a_remote_server_is_a_url_with_headers(kind: McpServerKind, url: str) -> None:
    config = McpServerConfig(slug="weather", kind=kind, url=url, headers={"Authorization": "Bearer x"})
    assert config.kind.is_remote


@pytest.mark.parametrize("kind", REMOTE)
@pytest.mark.parametrize(
    "url", [None, "", "ftp://example.org", "example.org/mcp", "file:///etc/passwd", "javascript:1"]
)
def test_a_remote_server_without_a_web_address_is_refused(kind: McpServerKind, url: str | None) -> None:
    with pytest.raises(ServiceError) as refused:
        McpServerConfig(slug="weather", kind=kind, url=url)
    assert paths(refused) == ["url"]


@pytest.mark.parametrize("kind", REMOTE)
def test_a_remote_server_has_nothing_to_start(kind: McpServerKind) -> None:
    with pytest.raises(ServiceError) as refused:
        McpServerConfig(
            slug="weather", kind=kind, url="https://example.org", command="python3", args=("-m",), env={"A": "b"}
        )
    assert paths(refused) == ["command", "args", "env"]


def test_a_custom_server_needs_a_command_and_has_no_address() -> None:
    with pytest.raises(ServiceError) as refused:
        McpServerConfig(
            slug="files", kind=McpServerKind.CUSTOM, url="https://example.org", headers={"Authorization": "x"}
        )
    assert paths(refused) == ["command", "url", "headers"]


@pytest.mark.parametrize("slug", ["", "My-Files", "a b", "-x", "x" * 33, "a__b"])
def test_a_slug_must_fit_into_tool_names(slug: str) -> None:
    with pytest.raises(ServiceError) as refused:
        McpServerConfig(slug=slug, kind=McpServerKind.CUSTOM, command="files")
    assert paths(refused) == ["slug"]


@pytest.mark.parametrize(
    ("numbers", "path"),
    [
        (Numbers(timeout_s=0), "timeout_s"),
        (Numbers(idle_timeout_s=-1), "idle_timeout_s"),
        (Numbers(max_response_bytes=0), "max_response_bytes"),
        (Numbers(max_concurrency=0), "max_concurrency"),
    ],
)
def test_bounds_must_be_positive(numbers: Numbers, path: str) -> None:
    with pytest.raises(ServiceError) as refused:
        McpServerConfig(slug="files", kind=McpServerKind.CUSTOM, command="files", **numbers)
    assert paths(refused) == [path]


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ServiceError) as refused:
        McpServerConfig(slug="A", kind=McpServerKind.HTTP, command="x", timeout_s=0)
    assert paths(refused) == ["slug", "url", "command", "timeout_s"]


@pytest.mark.requirement("B15")
@pytest.mark.parametrize("kind", list(McpServerKind))
def test_connections_of_remote_servers_are_shared_and_started_ones_belong_to_a_run(kind: McpServerKind) -> None:
    assert default_isolation(kind) is (Isolation.SHARED if kind in REMOTE else Isolation.RUN)


@pytest.mark.requirement("B11")
def test_a_reply_may_have_four_mebibytes_unless_said_otherwise() -> None:
    config = McpServerConfig(slug="files", kind=McpServerKind.CUSTOM, command="files")
    assert config.max_response_bytes == 4 * 1024 * 1024


LOOK = DeclaredTool(name="look", description="Looks.", parameters={"type": "object"})


def declaring(*tools: DeclaredTool, kind: McpServerKind = McpServerKind.HTTP) -> McpServerConfig:
    command, url = ("look", None) if kind is McpServerKind.CUSTOM else (None, "https://example.org/rpc")
    return McpServerConfig(slug="look", kind=kind, command=command, url=url, declared_tools=tools)


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("kind", [McpServerKind.HTTP, McpServerKind.CUSTOM])
def test_a_server_with_declared_tools_answers_calls_only(kind: McpServerKind) -> None:
    assert declaring(LOOK, kind=kind).answers_calls_only
    assert not declaring(kind=kind).answers_calls_only


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("tools", "wrong"),
    [
        ((replace(LOOK, name="no spaces"),), ["declared_tools.0.name"]),
        ((LOOK, LOOK), ["declared_tools.1.name"]),
        ((replace(LOOK, description=" "),), ["declared_tools.0.description"]),
        ((replace(LOOK, description="x" * (MAX_DESCRIPTION + 1)),), ["declared_tools.0.description"]),
        ((replace(LOOK, parameters={}),), ["declared_tools.0.parameters"]),
        ((replace(LOOK, parameters={"type": "object", "x": "x" * MAX_SCHEMA}),), ["declared_tools.0.parameters"]),
        ((replace(LOOK, output_schema={"type": "string"}),), ["declared_tools.0.output_schema"]),
        (tuple(replace(LOOK, name=f"t{n}") for n in range(MAX_DECLARED_TOOLS + 1)), ["declared_tools"]),
    ],
    ids=["name", "twice", "no description", "long description", "no type", "large schema", "output", "too many"],
)
def test_a_declaration_that_no_model_could_use_is_refused(tools: tuple[DeclaredTool, ...], wrong: list[str]) -> None:
    with pytest.raises(ServiceError) as refused:
        declaring(*tools)
    assert paths(refused) == wrong


@pytest.mark.requirement("B1")
def test_a_server_of_another_kind_lists_its_tools_itself() -> None:
    with pytest.raises(ServiceError) as refused:
        declaring(LOOK, kind=McpServerKind.SSE)
    assert paths(refused) == ["declared_tools"]


@pytest.mark.requirement("B1")
def test_a_server_without_a_handshake_can_request_nothing() -> None:
    with pytest.raises(ServiceError) as refused:
        replace(declaring(LOOK), elicitation=ElicitationPolicy.ASK, roots=PassingPolicy.PASS)
    assert paths(refused) == ["elicitation", "roots"]
