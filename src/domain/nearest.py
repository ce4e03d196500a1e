"""The name that was probably meant, looked for within a bounded time."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import islice

_SIMILAR = 0.6
_LONGEST = 100
_MOST_OPTIONS = 1_000
_MOST_COMPARED = 50_000
"""Pairs of characters. Comparing two names takes up to the product of their lengths."""


def nearest(name: str, options: Iterable[str]) -> str | None:
    """The most similar option, or None if none is similar. Long names, and options beyond a bound,
    are not compared."""
    if len(name) > _LONGEST:
        return None
    matcher: SequenceMatcher[str] = SequenceMatcher(b=name)
    best, best_ratio, left = None, _SIMILAR, _MOST_COMPARED
    for option in islice(options, _MOST_OPTIONS):
        if len(option) > _LONGEST:
            continue
        matcher.set_seq1(option)
        if matcher.real_quick_ratio() < best_ratio or matcher.quick_ratio() < best_ratio:
            continue
        left -= len(name) * len(option)
        if left < 0:
            break
        ratio = matcher.ratio()
        if ratio > best_ratio or (best is None and ratio == best_ratio):
            best, best_ratio = option, ratio
    return best
