"""Clock and ids of the machine."""

import re
from datetime import UTC, timedelta

import pytest

from infrastructure.runtime.system import RandomIds, SystemClock


def test_an_id_is_its_prefix_and_26_lowercase_base32_characters() -> None:
    assert re.fullmatch(r"run_[0-9a-hjkmnp-tv-z]{26}", RandomIds().new("run"))


def test_ids_made_in_later_milliseconds_sort_after_earlier_ones() -> None:
    moments = [1, 2, 31, 32, 1023, 1024, 1_790_000_000_000, 1_790_000_000_001, 2**48 - 1]
    clock = iter(moments)
    ids = RandomIds(unix_time_ns=lambda: next(clock) * 1_000_000)

    made = [ids.new("msg") for _ in moments]

    assert made == sorted(made)
    assert len({len(identifier) for identifier in made}) == 1


def test_ids_of_one_millisecond_are_told_apart_by_80_random_bits() -> None:
    ids = RandomIds(unix_time_ns=lambda: 1_790_000_000_000 * 1_000_000)

    made = {ids.new("msg") for _ in range(2_000)}

    assert len(made) == 2_000
    assert len({identifier[len("msg_") :][:9] for identifier in made}) == 1
    # Every character of the random part takes many values: no bit of it is constant.
    assert all(len({identifier[position] for identifier in made}) > 25 for position in range(-15, 0))


@pytest.mark.requirement("C6")
def test_a_token_is_the_public_prefix_and_256_random_bits_in_url_safe_characters() -> None:
    tokens = {RandomIds().new_token() for _ in range(100)}

    assert len(tokens) == 100
    assert all(re.fullmatch(r"dgm_[A-Za-z0-9_-]{43}", token) for token in tokens)


def test_the_clock_tells_utc_and_its_monotonic_time_never_steps_back() -> None:
    clock = SystemClock()
    earlier, later = clock.monotonic(), clock.monotonic()

    assert clock.now().tzinfo is UTC
    assert clock.now().utcoffset() == timedelta(0)
    assert later >= earlier
