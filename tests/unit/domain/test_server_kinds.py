"""What each kind of MCP server needs, takes and refuses, and how packages are named."""

from typing import Any

import pytest

from domain.errors import ServiceError
from domain.mcp.kinds import KINDS, NEW_ORGANIZATION_KINDS, is_permitted, kind_of
from domain.mcp.packages import WrongPackageError, npm_package, python_package
from domain.mcp.server import McpServerConfig, McpServerKind

NPM, PYTHON, OCI, CUSTOM, SSE, HTTP, A2A = McpServerKind
URL = "https://mcp.example.org/mcp"
VALID: list[tuple[McpServerKind, dict[str, Any]]] = [
    (
        NPM,
        {"package": "@modelcontextprotocol/server-memory", "version": "2026.8.31", "args": ("a",), "env": {"A": "b"}},
    ),
    (NPM, {"package": "/srv/packages/server.tgz", "command": "server"}),
    (PYTHON, {"package": "mcp-server-time"}),
    (PYTHON, {"package": "mcp-server-sqlite mcp<2", "version": "2025.4.25"}),
    (PYTHON, {"package": "/srv/packages/server-1.0-py3-none-any.whl mcp<2", "args": ("-m", "server")}),
    (OCI, {"package": "ghcr.io/owner/server:1.2", "args": ("a",), "env": {"A": "b"}}),
    (OCI, {"package": "mcp/time", "version": f"sha256:{'a' * 64}"}),
    (CUSTOM, {"command": "server"}),
    (CUSTOM, {"path": "/srv/server", "command": "run.sh", "args": ("a",), "env": {"A": "b"}}),
    (CUSTOM, {"path": "/srv/server"}),
    (SSE, {"url": URL, "headers": {"X-Key": "k"}}),
    (HTTP, {"url": URL, "headers": {"X-Key": "k"}}),
    (A2A, {"url": URL, "headers": {"X-Key": "k"}}),
]
PACKAGE: dict[str, Any] = {"package": "server"}


def faults(kind: McpServerKind, **settings: Any) -> list[str]:
    """The paths of what is wrong."""
    with pytest.raises(ServiceError) as refused:
        McpServerConfig(slug="x", kind=kind, **settings)
    assert refused.value.code == "mcp_server_invalid"
    return [violation.path for violation in refused.value.violations]


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(("kind", "settings"), VALID)
def test_a_server_of_each_kind_is_described(kind: McpServerKind, settings: dict[str, Any]) -> None:
    config = McpServerConfig(slug="x", kind=kind, **settings)
    assert config.needs_installation == (kind in (NPM, PYTHON, OCI) or "path" in settings)


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("kind", "settings", "paths"),
    [
        (NPM, {}, ["package"]),
        (PYTHON, {}, ["package"]),
        (OCI, {}, ["package"]),
        (OCI, {"package": "mcp/time", "command": "sh", "path": "/srv", "url": URL}, ["path", "command", "url"]),
        (OCI, {"package": "mcp/time:1", "version": "2"}, ["version"]),
        (CUSTOM, {}, ["command"]),
        (SSE, {}, ["url"]),
        (HTTP, {}, ["url"]),
        (A2A, {}, ["url"]),
        (HTTP, {"url": "ftp://example.org"}, ["url"]),
        (NPM, PACKAGE | {"url": URL, "headers": {"a": "b"}, "path": "/srv"}, ["path", "url", "headers"]),
        (PYTHON, PACKAGE | {"url": URL, "headers": {"a": "b"}, "path": "/srv"}, ["path", "url", "headers"]),
        (CUSTOM, PACKAGE | {"command": "c", "version": "1", "url": URL}, ["package", "version", "url"]),
        (SSE, PACKAGE | {"url": URL, "version": "1", "path": "/p"}, ["package", "version", "path"]),
        (HTTP, {"url": URL, "command": "c", "args": ("a",), "env": {"A": "b"}}, ["command", "args", "env"]),
        (CUSTOM, {"path": "server"}, ["path"]),
        (NPM, PACKAGE | {"command": "../sh"}, ["command"]),
        (PYTHON, PACKAGE | {"command": "-c"}, ["command"]),
    ],
)
def test_what_a_kind_lacks_or_does_not_take_is_named(
    kind: McpServerKind, settings: dict[str, Any], paths: list[str]
) -> None:
    assert faults(kind, **settings) == paths


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("package", "version", "specifier"),
    [
        ("server", None, "server"),
        ("server", "1.2.3", "server@1.2.3"),
        ("server@1.2.3", None, "server@1.2.3"),
        ("@scope/server", None, "@scope/server"),
        ("@scope/server", "^1.0", "@scope/server@^1.0"),
        ("@scope/server@latest", None, "@scope/server@latest"),
        ("/srv/server-1.0.0.tgz", None, "/srv/server-1.0.0.tgz"),
    ],
)
def test_npm_packages_are_named_as_npm_names_them(package: str, version: str | None, specifier: str) -> None:
    assert npm_package(package, version).specifier == specifier


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("package", "version", "path"),
    [
        ("--global", None, "package"),
        ("git+https://example.org/x", None, "package"),
        ("owner/repository", None, "package"),
        ("https://example.org/x.tgz", None, "package"),
        ("./server.tgz", None, "package"),
        ("/srv/server", None, "package"),
        ("/srv/server.tgz", "1.0", "version"),
        ("Server", None, "package"),
        ("a b", None, "package"),
        ("server", "1.0 --global", "version"),
        ("server", "npm:other@1", "version"),
        ("server", "", "version"),
        ("server@file:/etc", None, "package"),
        ("server@1.0", "1.0", "version"),
        ("", None, "package"),
        ("@", None, "package"),
    ],
)
def test_anything_else_is_no_npm_package(package: str, version: str | None, path: str) -> None:
    with pytest.raises(WrongPackageError) as refused:
        npm_package(package, version)
    assert refused.value.violation.path == path


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("package", "version", "requirements"),
    [
        ("server", None, ("server",)),
        ("server", "1.2.3", ("server==1.2.3",)),
        ("Server_X.y[a,b]>=1,<2", None, ("Server_X.y[a,b]>=1,<2",)),
        ("server[cli]", "1!2.0rc1", ("server[cli]==1!2.0rc1",)),
        ("  server  mcp<2 anyio ", "1", ("server==1", "mcp<2", "anyio")),
        ("/srv/server-1-py3-none-any.whl mcp<2", None, ("/srv/server-1-py3-none-any.whl", "mcp<2")),
        ("/srv/server-1.tar.gz", None, ("/srv/server-1.tar.gz",)),
    ],
)
def test_python_packages_are_named_as_pip_names_them(
    package: str, version: str | None, requirements: tuple[str, ...]
) -> None:
    assert python_package(package, version).requirements == requirements


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(
    ("package", "version", "path"),
    [
        ("--index-url=https://example.org server", None, "package"),
        ("server --pre", None, "package"),
        ("server -r/etc/passwd", None, "package"),
        ("server@https://example.org/x.whl", None, "package"),
        ("git+https://example.org/x", None, "package"),
        ("server mcp < 2", None, "package"),
        ("server;os_name=='x'", None, "package"),
        ("server /srv/other.whl", None, "package"),
        ("server.whl/", None, "package"),
        ("./server.whl", None, "package"),
        ("/srv/server", None, "package"),
        ("/srv/server.whl", "1", "version"),
        ("server==1", "1", "version"),
        ("server", "latest", "version"),
        ("server", ">=1", "version"),
        ("", None, "package"),
    ],
)
def test_anything_else_is_no_python_package(package: str, version: str | None, path: str) -> None:
    with pytest.raises(WrongPackageError) as refused:
        python_package(package, version)
    assert refused.value.violation.path == path


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(("kind", "settings"), VALID)
def test_a_new_organization_may_have_remote_servers_and_packages_of_registries(
    kind: McpServerKind, settings: dict[str, Any]
) -> None:
    config = McpServerConfig(slug="x", kind=kind, **settings)
    on_machine = kind in (CUSTOM, OCI) or str(settings.get("package", "")).startswith("/")
    assert is_permitted(NEW_ORGANIZATION_KINDS, config) is not on_machine
    assert is_permitted(None, config)
    assert is_permitted(KINDS, config)
    assert not is_permitted((), config)


@pytest.mark.requirement("B1")
def test_a_file_counts_as_one_however_it_is_written() -> None:
    for package in ("/srv/a.whl", "/srv/a.whl mcp<2"):
        assert kind_of(McpServerConfig(slug="x", kind=PYTHON, package=package)) == "archive"
