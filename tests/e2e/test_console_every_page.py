"""Each page of the console, by its route: everybody can read it in both themes at three widths, and
none is wider than its screen."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import AXE, OF_COLORS, Person, browsing, needs_browser
from tests.e2e.console_pages import ADDRESSES, addresses, company_with_everything, page_routes
from tests.e2e.small_company import Company

pytestmark = [pytest.mark.timeout(900), pytest.mark.requirement("U6")]

WITHOUT_WAY_BACK = {
    "/": "the first page",
    "/chat/{thread_id}": "has the other conversations beside it",
    "/inbox": "is a list",
    "/sign-in/{code}": "is seen before the sidebar",
}
ID = re.compile(r"\b[a-z]{3}_[0-9a-z]{20,}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company_with_everything(tmp_path_factory.mktemp("pages")) as opened:
        yield opened


def test_each_page_with_parameters_has_an_address_at_which_it_is_looked_at() -> None:
    routes = page_routes()
    assert [route for route in routes if "{" in route and route not in ADDRESSES] == []
    assert ADDRESSES.keys() <= set(routes)
    assert len(routes) > 40


@needs_browser()
@pytest.mark.skipif(not AXE.exists(), reason="needs `make node`")
@pytest.mark.parametrize("width", [1280, 1024, 390])
def test_each_page_can_be_read_by_everybody_in_both_themes(browser: Browser, company: Company, width: int) -> None:
    somebody = Person(browser, company.service.url, width=width)
    somebody.sign_in(company.service.key)
    known = addresses(company)
    for route in page_routes():
        somebody.go(f"/console{known[route]}")
        expect(somebody.page.get_by_role("main")).to_be_visible()
        expect(somebody.page.locator(".htmx-request")).to_have_count(0)  # parts that a page fetches by itself
        somebody.page.evaluate("for (const folded of document.querySelectorAll('main details')) folded.open = true")
        assert somebody.repeated_ids() == [], route
        assert somebody.violations() == [], route
        somebody.page.emulate_media(color_scheme="dark")
        assert somebody.violations(OF_COLORS) == [], f"{route}, dark"
        somebody.page.emulate_media(color_scheme="light")
        assert somebody.page.evaluate("document.documentElement.scrollWidth") <= width, route
    assert somebody.complaints == []
    somebody.page.context.close()


@needs_browser()
def test_a_page_of_one_thing_leads_back_to_what_it_belongs_to_by_names(browser: Browser, company: Company) -> None:
    somebody = Person(browser, company.service.url, width=390)
    somebody.sign_in(company.service.key)
    known = addresses(company)
    for route in sorted(ADDRESSES.keys() - WITHOUT_WAY_BACK.keys()):
        somebody.go(f"/console{known[route]}")
        links = somebody.page.get_by_role("navigation", name="Breadcrumb").get_by_role("link")
        expect(links.first).to_be_visible()
        assert not [text for text in links.all_inner_texts() if ID.search(text)], route
        for link in links.all():
            answer = somebody.page.request.get(f"{company.service.url}{link.get_attribute('href')}")
            assert (answer.status, answer.url.partition("?")[0].endswith("/sign-in")) == (200, False), route
    assert somebody.complaints == []
    somebody.page.context.close()
