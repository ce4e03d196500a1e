"""Failed sign-ins: bounded per address, and logged."""

import logging

import pytest

from interfaces.console.sign_in_attempts import FAILURES, SignInAttempts
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused


@pytest.mark.requirement("C6")
async def test_an_address_waits_after_some_failures_and_others_do_not() -> None:
    clock = FixedClock()
    attempts = SignInAttempts(clock=clock)
    for _ in range(FAILURES.calls):
        attempts.require_room("192.0.2.1")
        attempts.failed("192.0.2.1")
    with refused("rate_limited"):
        attempts.require_room("192.0.2.1")
    attempts.require_room("192.0.2.2")
    clock.advance(FAILURES.per_s)
    attempts.require_room("192.0.2.1")


async def test_each_failure_is_logged_with_its_address_up_to_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    attempts = SignInAttempts(clock=FixedClock())
    with caplog.at_level(logging.WARNING):
        for number in range(100):
            attempts.failed(f"192.0.2.{number}")
    assert caplog.records[0].__dict__["client"] == "192.0.2.0"
    assert 1 < len(caplog.records) < 50
