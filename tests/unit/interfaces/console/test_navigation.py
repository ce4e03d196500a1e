"""The sidebar: which page is marked as the current one, and the keys that lead to each."""

import pytest

from interfaces.console.navigation import NAVIGATION

pytestmark = pytest.mark.requirement("U6")
PAGES = [each for _, entries in NAVIGATION for each in entries]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/console", "Overview"),
        ("/console/", "Overview"),
        ("/console/chat/thr_1", "Chat"),
        ("/console/servers-new", "MCP servers"),
        ("/console/inbox/decided", "Inbox"),
        ("/console/compare", "Runs"),
        ("/console/secrets", "Settings"),
        ("/console/settings/identity-providers", "Settings"),
    ],
)
def test_a_page_is_marked_where_it_belongs_and_nowhere_else(path: str, name: str) -> None:
    assert [each.name for each in PAGES if each.has(path)] == [name]


def test_each_page_has_a_key_of_its_own() -> None:
    assert len({each.key for each in PAGES}) == len(PAGES)
