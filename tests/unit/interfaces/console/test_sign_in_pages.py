"""The sealed cookies of sign-ins under way."""

from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from pytest_mock import MockerFixture

from application.identity.queries import ListOfferedProviders
from application.identity.sign_out_address import SignOutAddress
from application.mcp.oauth_client import PublicAddress
from infrastructure.secrets.secret_box import SecretBox
from interfaces.console.sign_in_pages import MAX_COOKIES, SignInPages
from tests.unit.application.identity.sign_ins import a_pending

pytestmark = pytest.mark.requirement("P1")


class Browser:
    """Begins sign-ins, and keeps the cookies that it is given."""

    def __init__(self, pages: SignInPages) -> None:
        self.pages = pages
        self.cookies: dict[str, str] = {}

    def begin(self, number: int, target: str = "/console") -> str:
        state = f"state-{number}"
        pending = replace(a_pending(), state=state, expires_at=a_pending().expires_at + timedelta(seconds=number))
        for cookie in self.pages.begun(pending, target, self.cookies):
            if cookie.max_age:
                self.cookies[cookie.key] = cookie.value or ""
            else:
                del self.cookies[cookie.key]
        return state

    def knows(self, state: str) -> bool:
        found = self.pages.of(self.cookies, state)
        return found is not None and found.pending.state == state


@pytest.fixture
def browser(mocker: MockerFixture) -> Browser:
    pages = SignInPages(
        list_offered_providers=mocker.create_autospec(ListOfferedProviders, instance=True),
        sign_out_address=mocker.create_autospec(SignOutAddress, instance=True),
        box=SecretBox([Fernet.generate_key().decode()]),
        address=mocker.create_autospec(PublicAddress, instance=True, url="https://agents.example.com"),
    )
    return Browser(pages)


def test_several_sign_ins_are_under_way_and_each_is_ended_alone(browser: Browser) -> None:
    first, second = browser.begin(1), browser.begin(2)
    assert browser.knows(first)
    assert browser.knows(second)
    assert not browser.knows("state-3")
    ended = browser.pages.ended(first)
    assert (ended.max_age, ended.path) == (0, "/console/sign-in")
    del browser.cookies[ended.key]
    assert (browser.knows(first), browser.knows(second)) == (False, True)


def test_the_oldest_sign_ins_end_where_there_are_too_many(browser: Browser) -> None:
    browser.cookies[f"dragoman_sign_in_{'0' * 16}"] = "nothing that this service sealed"
    states = [browser.begin(number) for number in range(MAX_COOKIES + 2)]
    assert [browser.knows(state) for state in states] == [False, False, *[True] * MAX_COOKIES]
    assert len(browser.cookies) == MAX_COOKIES


@pytest.mark.parametrize("name", ["dragoman_sign_in_(x)", "dragoman_sign_in_", f"dragoman_sign_in_{'0' * 17}"])
def test_cookies_of_other_names_are_left_alone(browser: Browser, name: str) -> None:
    browser.cookies[name] = "x" * 7_000
    state = browser.begin(1)
    assert browser.knows(state)
    assert name in browser.cookies


def test_cookies_of_sign_ins_fit_the_header_of_a_request(browser: Browser) -> None:
    long = f"/console/authorize?{'x' * 1_900}"
    states = [browser.begin(number, long) for number in range(4)]
    assert [browser.knows(state) for state in states] == [False, False, True, True]
    assert all(len(value) < 4_000 for value in browser.cookies.values())
    assert sum(map(len, browser.cookies.values())) < 6_600
