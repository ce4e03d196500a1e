"""Key names that indicate secret values, and references to named secrets in a text."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

_REFERENCE = re.compile(r"\$\{secret:([^{}]*)\}")
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SECRET_WORDS = frozenset(
    {"authorization", "apikey", "cookie", "credential", "credentials", "passphrase", "passwd", "password", "secret"}
    | {"secrets", "token"}
)
_SECRET_PAIRS = frozenset({("api", "key"), ("private", "key"), ("access", "key"), ("set", "cookie")})


def words_of(name: str) -> list[str]:
    """The words of a name in lower case: `api`, `key` for `X_API_KEY` and `apiKey`."""
    return [word.lower() for word in _WORDS.findall(name)]


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a key's name indicates that its value is a secret: `api_key`, `X-Api-Key`,
    `accessToken`, `DB_PASSWORD`."""
    words = words_of(name)
    return not _SECRET_WORDS.isdisjoint(words) or not _SECRET_PAIRS.isdisjoint(pairwise(words))


def references_in(text: str) -> tuple[str, ...]:
    """The names in `${secret:NAME}`, in order."""
    return tuple(_REFERENCE.findall(text))


def without_references(text: str, values: Sequence[str]) -> str:
    """The text with its references replaced by these values, one for each."""
    left = iter(values)
    return _REFERENCE.sub(lambda _: next(left), text)
