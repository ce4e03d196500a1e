"""KeyLimits: how many keys are counted. The limits themselves: test_authenticate.py."""

from application.identity.key_limits import KeyLimits
from domain.ids import ApiKeyId
from domain.rate_limit import RateLimit
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused


def test_the_counting_of_keys_is_bounded() -> None:
    limits = KeyLimits(every=RateLimit(calls=1, per_s=3600), clock=FixedClock(), capacity=2)
    for number in range(5):
        limits.take(ApiKeyId(f"key_{number}"), None)

    limits.take(ApiKeyId("key_0"), None)

    with refused("rate_limited"):
        limits.take(ApiKeyId("key_4"), None)
