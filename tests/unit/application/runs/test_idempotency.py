"""Which run an idempotency key names."""

import pytest

from application.runs.idempotency import UsedKey, named_run
from application.runs.new_run import KEY_LIFETIME, IdempotencyKey
from tests.builders import RUN, START
from tests.refusals import refused

KEY = IdempotencyKey(key="order-1", body_digest="a")
USED = UsedKey(body_digest="a", run_id=RUN, used_at=START)


def test_an_unused_key_names_no_run() -> None:
    assert named_run(KEY, None, at=START) is None


def test_a_key_names_its_run_for_a_day_and_is_free_after_it() -> None:
    assert named_run(KEY, USED, at=START) == RUN
    assert named_run(KEY, USED, at=START + KEY_LIFETIME) is None


@pytest.mark.requirement("E5")
def test_a_key_that_is_used_for_another_body_is_refused_within_its_lifetime() -> None:
    other = IdempotencyKey(key="order-1", body_digest="b")
    with refused("idempotency_key_reused"):
        named_run(other, USED, at=START)
    assert named_run(other, USED, at=START + KEY_LIFETIME) is None
