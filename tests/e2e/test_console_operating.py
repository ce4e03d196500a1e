"""Pages by which a company is operated: everybody can read them, in light and dark, at three widths."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import AXE, Person, browsing, needs_browser
from tests.e2e.small_company import Company, small_company

pytestmark = [pytest.mark.timeout(300), needs_browser(), pytest.mark.requirement("U6")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with small_company(tmp_path_factory.mktemp("operating")) as opened:
        yield opened


def try_a_tool(page: Page) -> None:
    page.get_by_label("words").fill("charged twice")
    page.get_by_role("button", name="Call the tool").click()
    expect(page.locator("#tried .status")).to_have_text("succeeded")


def see_the_calls(page: Page) -> None:
    expect(page.locator("#calls")).to_contain_text("Used by")


def compare_two(page: Page) -> None:
    page.get_by_label("Choose How many tickets are open?").check()
    page.get_by_label("Choose And last week?").check()
    page.get_by_role("button", name="Compare two").click()
    expect(page.get_by_role("heading", name="Steps")).to_be_visible()


Steps = Callable[[Page], None]
PAGES: dict[str, tuple[str, Steps]] = {
    "trial": ("/console/servers/tickets/try?tool=find_ticket", try_a_tool),
    "comparison": ("/console/runs", compare_two),
    "server": ("/console/servers/tickets", see_the_calls),
}


@pytest.mark.skipif(not AXE.exists(), reason="needs `make node`")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 820, 390])
def test_pages_of_operation_can_be_read_by_everybody(
    browser: Browser, company: Company, width: int, dark: bool
) -> None:
    person = Person(browser, company.service.url, width=width, dark=dark)
    person.sign_in(company.service.key)
    for name, (path, steps) in PAGES.items():
        person.go(path)
        steps(person.page)
        assert person.violations() == [], name
        assert person.page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the screen"
    assert person.complaints == []
    person.page.context.close()
