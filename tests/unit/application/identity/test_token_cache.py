"""TokenCache: bounded, and empty of what was revoked here or changed in another process."""

import pytest

from application.identity.token_cache import TokenCache, known_key
from domain.ids import ApiKeyId
from tests.builders import ORG, OTHER_ORG, a_key


async def test_the_cache_is_bounded_and_drops_what_was_used_longest_ago() -> None:
    cache = TokenCache(capacity=2)
    for name in ("a", "b"):
        cache.put(name, known_key(a_key()), generation=0)
    cache.get("a")

    cache.put("c", known_key(a_key()), generation=0)

    assert [cache.get(name) is not None for name in ("a", "b", "c")] == [True, False, True]


@pytest.mark.requirement("C6")
async def test_nothing_is_known_while_a_revocation_elsewhere_would_not_be_heard_of() -> None:
    fresh = [True]
    cache, key = TokenCache(capacity=2, fresh=lambda: fresh[0]), a_key()
    cache.put("a", known_key(key), generation=0)
    assert cache.get("a") == cache.of_key(key.id) == known_key(key)

    fresh[0] = False

    assert (cache.get("a"), cache.of_key(key.id)) == (None, None)


@pytest.mark.requirement("C6")
async def test_keys_of_an_organization_that_changed_elsewhere_are_forgotten_with_those_being_looked_up() -> None:
    cache = TokenCache(capacity=4)
    keys = {name: a_key(ApiKeyId(name), organization_id=of) for name, of in (("a", ORG), ("b", OTHER_ORG))}
    for name, key in keys.items():
        cache.put(name, known_key(key), generation=0)

    cache.forget_organization(ORG)

    assert (cache.get("a"), cache.of_key(keys["a"].id)) == (None, None)
    assert cache.get("b") == known_key(keys["b"])
    cache.put("c", known_key(a_key()), generation=0)
    assert cache.get("c") is None
    cache.forget_organization(None)
    assert cache.get("b") is None


async def test_a_cache_without_capacity_remembers_nothing() -> None:
    cache = TokenCache(capacity=0)

    cache.put("a", known_key(a_key()), generation=0)

    assert cache.get("a") is None
