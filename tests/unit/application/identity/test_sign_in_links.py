"""SignInLinks: codes that work once, for a while."""

import pytest

from application.identity.sign_in_links import LASTS, SignInLinks
from tests.doubles.surroundings import StepClock


@pytest.mark.requirement("C6")
def test_a_code_stands_for_the_key_of_its_creator_once() -> None:
    links = SignInLinks(clock=StepClock())
    code = links.create("dgm_secret").code
    assert links.redeem(code) == "dgm_secret"
    assert links.redeem(code) is None


def test_a_code_does_not_work_after_its_time() -> None:
    clock = StepClock()
    links = SignInLinks(clock=clock)
    code = links.create("dgm_secret").code
    clock.advance(LASTS.total_seconds())
    assert links.redeem(code) is None


def test_an_unknown_code_opens_nothing_and_spends_no_other() -> None:
    links = SignInLinks(clock=StepClock())
    code = links.create("dgm_secret").code
    assert links.redeem("another") is None
    assert links.redeem(code) == "dgm_secret"


def test_of_many_codes_the_oldest_stop_working() -> None:
    links = SignInLinks(clock=StepClock(step_s=0.01))
    codes = [links.create(f"dgm_{number}").code for number in range(1_001)]
    assert links.redeem(codes[0]) is None
    assert links.redeem(codes[-1]) == "dgm_1000"


def test_neither_code_nor_key_is_in_a_representation() -> None:
    links = SignInLinks(clock=StepClock())
    new = links.create("dgm_secret")
    assert new.code not in repr(new)
