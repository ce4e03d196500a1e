"""The command palette: everything that has a name, by the keyboard."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.service import Service, a_turn, serving

pytestmark = [pytest.mark.timeout(240), needs_browser(), pytest.mark.requirement("U6")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("palette") / "home") as running:
        running.agent("librarian", running.script("librarian", a_turn("Hello.")))
        running.run("librarian", "Where is the atlas?")
        yield running


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1024, True), (390, False)])
def test_what_has_a_name_is_found_and_opened_by_the_keyboard(
    browser: Browser, service: Service, width: int, *, dark: bool
) -> None:
    somebody = Person(browser, service.url, width=width, dark=dark)
    somebody.sign_in(service.key)
    page = somebody.page
    palette = page.get_by_role("dialog", name="Palette", exact=True)
    page.keyboard.press("Control+k")
    expect(palette.get_by_role("link", name="Audit")).to_be_visible()
    page.keyboard.type("ATLAS")
    expect(palette.get_by_role("link")).to_have_text(
        ["Where is the atlas? Conversation", "All runs with “ATLAS” Search"]
    )
    if AXE.exists():
        assert somebody.violations() == []
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.type("librar")
    page.keyboard.press("Enter")  # before anything was found for it
    expect(page.get_by_role("heading", name="Agent librarian")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    page.keyboard.type("nothing has this")
    expect(palette).to_contain_text("Nothing has this name.")
    assert somebody.complaints == []
    page.context.close()
