"""MCP Apps: who may call a tool, what its links are, and which clients render them."""

import pytest

from domain.mcp.apps import APP_TYPE, APPS_EXTENSION, Audience, audience_of, links_in, renders_apps, with_links

pytestmark = pytest.mark.requirement("X6")
BOTH = frozenset(Audience)


@pytest.mark.parametrize(
    ("meta", "audience"),
    [
        (None, BOTH),
        ({"ui": "x"}, BOTH),
        ({"ui": {"visibility": "app"}}, BOTH),
        ({"ui": {"visibility": ["model", "app"]}}, BOTH),
        ({"ui": {"visibility": ["app"]}}, {Audience.APP}),
        ({"ui": {"visibility": ["model", {}]}}, {Audience.MODEL}),
        ({"ui": {"visibility": []}}, set()),
    ],
)
def test_a_tool_is_for_everybody_unless_its_server_lists_whom(meta: object, audience: set[Audience]) -> None:
    assert audience_of(meta) == audience


@pytest.mark.parametrize(
    ("capabilities", "renders"),
    [
        ({}, False),
        ({"extensions": []}, False),
        ({"extensions": {APPS_EXTENSION: {}}}, False),
        ({"extensions": {APPS_EXTENSION: {"mimeTypes": ["text/html"]}}}, False),
        ({"extensions": {APPS_EXTENSION: {"mimeTypes": ["text/html", APP_TYPE]}}}, True),
    ],
)
def test_a_client_renders_apps_if_it_declares_their_type(capabilities: dict[str, object], renders: bool) -> None:
    assert renders_apps(capabilities) is renders  # type: ignore[arg-type]


def test_links_are_changed_under_all_their_names_and_nothing_else_is() -> None:
    meta = {
        "ui": {"resourceUri": "ui://a", "visibility": ["app"]},
        "ui/resourceUri": "ui://a",
        "openai/outputTemplate": "ui://b",
        "com.example/x": "ui://c",
    }
    assert with_links(meta, lambda uri: f"{uri}/changed") == {
        "ui": {"resourceUri": "ui://a/changed", "visibility": ["app"]},
        "ui/resourceUri": "ui://a/changed",
        "openai/outputTemplate": "ui://b/changed",
        "com.example/x": "ui://c",
    }
    assert links_in(meta) == {"ui://a", "ui://b"}


def test_a_link_to_anything_else_than_an_app_is_removed() -> None:
    meta = {"ui": {"resourceUri": "file:///etc/passwd"}, "ui/resourceUri": "http://example.com/", "x": 1}
    assert with_links(meta, str) == {"ui": {}, "x": 1}
    assert links_in(meta) == frozenset()
    assert links_in("no object") == frozenset()
