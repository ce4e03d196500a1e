"""The size of a regular expression after counted repetitions are unrolled: an upper estimate of
its states, which bound the time to compile it and to match one character.

Above: the cost of schemas.
"""

import re
from collections.abc import Iterator

MAX_SIZE = 1_000_000
"""Sizes are capped here."""
_TOKENS = re.compile(
    r"\\[pP]\{[^{}]{0,40}\}|\\[pP].|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.|\{[0-9]{1,9}(?:,[0-9]{0,9})?\}|.",
    re.DOTALL,
)
_SIZES = {".": 4, "p": 50, "w": 4, "d": 2, "s": 4}
_QUANTIFIERS = frozenset("*+?")


def pattern_size(pattern: str) -> int:
    """The estimate for one pattern, valid or not: at least 1, at most MAX_SIZE."""
    sizes = [0]
    """The size of each open group, from the outermost."""
    lasts = [0]
    """The size of the last atom of each open group, which a quantifier repeats."""
    for token in _atoms(pattern):
        if token == "(":
            sizes.append(0)
            lasts.append(0)
            continue
        if token == ")" and len(sizes) > 1:
            size = max(sizes.pop(), 1)
            lasts.pop()
        elif token[0] == "{" and len(token) > 1:
            size = lasts[-1] * (_most(token) - 1)
        elif token in _QUANTIFIERS:
            continue
        else:
            size = _size_of(token)
        sizes[-1] = min(sizes[-1] + max(size, 0), MAX_SIZE)
        lasts[-1] = size if token[0] != "{" or len(token) == 1 else lasts[-1] + max(size, 0)
    return min(max(sum(sizes), 1), MAX_SIZE)


def _atoms(pattern: str) -> Iterator[str]:
    """The tokens of the pattern; a class in brackets is one token `[`."""
    depth = 0
    for found in _TOKENS.finditer(pattern):
        token = found.group()
        if token == "[":
            depth += 1
            if depth == 1:
                yield token
        elif depth:
            depth -= token == "]"
        else:
            yield token


def _most(counted: str) -> int:
    """The most repetitions of `{m}`, `{m,}` or `{m,n}`."""
    return max(int(bound) for bound in counted[1:-1].split(",") if bound)


def _size_of(token: str) -> int:
    if token == "[":
        return _SIZES["."]
    if token[0] == "\\":
        return _SIZES.get(token[1:2].lower(), 1)
    return _SIZES.get(token, 1)
