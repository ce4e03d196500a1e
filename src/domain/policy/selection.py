"""Which rule of a layer holds for a tool: a name beats a glob, a longer literal prefix a shorter one; equals hold together."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import translate
from typing import TypeAlias

from domain.policy.rules import ToolPolicies, ToolRule

_WILD = re.compile(r"[*?\[]")

Selected: TypeAlias = tuple[tuple[str, ToolRule], ...]
"""Patterns and their rules: none, one, or several whose globs tie, of which each field is the stricter."""


class RuleSelection:
    """The rules of one layer, prepared for many names: a look into a dict, then globs in order of precedence."""

    def __init__(self, policies: ToolPolicies) -> None:
        self._exact = {pattern: rule for pattern, rule in policies.rules if not _WILD.search(pattern)}
        globs = [(literal_prefix(pattern), pattern, rule) for pattern, rule in policies.rules if _WILD.search(pattern)]
        globs.sort(key=lambda entry: (-len(entry[0]), entry[1]))
        self._globs = [(prefix, pattern, re.compile(translate(pattern)), rule) for prefix, pattern, rule in globs]

    def of(self, name: str) -> Selected:
        """What the layer says of the tool `name`. The order in which rules were written does not matter."""
        exact = self._exact.get(name)
        if exact is not None:
            return ((name, exact),)
        found: list[tuple[str, ToolRule]] = []
        length = 0
        for prefix, pattern, expression, rule in self._globs:
            if found and len(prefix) < length:
                break
            if name.startswith(prefix) and expression.match(name) is not None:
                found.append((pattern, rule))
                length = len(prefix)
        return tuple(found)


def literal_prefix(pattern: str) -> str:
    """What stands before the first wildcard."""
    wild = _WILD.search(pattern)
    return pattern if wild is None else pattern[: wild.start()]


def fitting(pattern: str, names: Iterable[str]) -> Iterator[str]:
    """Those of the names that a name or glob fits, whatever other patterns say; looked through fast, since there may be very many."""
    prefix, expression = literal_prefix(pattern), re.compile(translate(pattern))
    return (name for name in names if name.startswith(prefix) and expression.match(name) is not None)
