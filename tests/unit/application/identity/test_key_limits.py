"""KeyLimits: what a request costs whose place must be asked first. The limits themselves:
test_authenticate.py."""

import pytest

from application.identity.key_limits import KeyLimits
from application.system.rates import Bucket, LocalRates, TooSoon
from domain.errors import ServiceError
from domain.ids import ApiKeyId
from domain.rate_limit import RateLimit
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused

KEY = ApiKeyId("key_0")
NO_ORGANIZATIONS = InMemoryOrganizationStore(InMemoryState())


def test_the_counting_of_keys_is_bounded() -> None:
    limits = KeyLimits(
        every=RateLimit(calls=1, per_s=3600),
        rates=LocalRates(clock=FixedClock(), capacity=4),
        organizations=NO_ORGANIZATIONS,
    )
    for number in range(5):
        assert limits.take(ApiKeyId(f"key_{number}"), None) is None

    assert limits.take(KEY, None) is None

    with refused("rate_limited"):
        limits.take(ApiKeyId("key_4"), None)


@pytest.mark.requirement("K3")
async def test_a_request_that_other_processes_left_no_place_is_told_when_to_come_back() -> None:
    class NoPlace:
        async def turn(self, buckets: list[Bucket], max_wait_s: float = 0.0) -> float:
            raise TooSoon(1.2)

    every = RateLimit(calls=1, per_s=2)
    limits = KeyLimits(every=every, rates=NoPlace(), organizations=NO_ORGANIZATIONS)  # type: ignore[arg-type]
    waiting = limits.take(KEY, None)

    assert waiting is not None
    with pytest.raises(ServiceError) as raised:
        await waiting
    assert (raised.value.code, raised.value.extra["retry_after_s"]) == ("rate_limited", "2")
