"""Selects the rules of one layer that apply to a tool.

- An exact name wins over a glob, and a longer literal prefix over a shorter one. Rules of equal
  precedence apply together.
- Only a more specific rule with `decision: allow` overrides a denial. If the most specific rule
  states something else, both apply. Thus a rule for a timeout does not permit what another rule
  denies.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import TypeAlias

from domain.policy.rules import ToolPolicies, ToolRule, Verdict

_WILD = re.compile(r"[*?\[]")

Selected: TypeAlias = tuple[tuple[str, ToolRule], ...]
"""Patterns and their rules: none, one, or several. With several, the stricter value of each field
applies: globs of equal precedence, a denial that also applies, or the permission that overrides it.
"""


@dataclass(frozen=True, slots=True)
class _Glob:
    """A rule for names that match a glob. A longer literal `prefix` is more specific."""

    prefix: str
    pattern: str
    expression: re.Pattern[str]
    rule: ToolRule

    def fits(self, name: str) -> bool:
        return name.startswith(self.prefix) and self.expression.match(name) is not None


class RuleSelection:
    """The rules of one layer, prepared for many lookups: a dict of exact names, then globs in order
    of precedence."""

    def __init__(self, policies: ToolPolicies) -> None:
        self._exact = {pattern: rule for pattern, rule in policies.rules if not is_glob(pattern)}
        globs = [
            _Glob(literal_prefix(pattern), pattern, _expression(pattern), rule)
            for pattern, rule in policies.rules
            if is_glob(pattern)
        ]
        self._globs = sorted(globs, key=lambda glob: (-len(glob.prefix), glob.pattern))
        self._denials = [glob for glob in self._globs if glob.rule.decision is Verdict.DENY]
        self._permissions = [glob for glob in self._globs if glob.rule.decision is Verdict.ALLOW]

    def of(self, name: str) -> Selected:
        """The rules of the layer that apply to the tool `name`, independent of the order in which
        they were written."""
        exact = self._exact.get(name)
        selected = _most_exact(self._globs, name) if exact is None else ((name, exact),)
        if any(rule.decision is Verdict.DENY for _, rule in selected):
            return selected
        permission = self.permission_of(name)
        if not permission:
            return (*selected, *_most_exact(self._denials, name))
        # The permission is included as a source; its other fields are replaced by the more specific
        # rule.
        named = {pattern for pattern, _ in selected}
        return (*selected, *((pattern, _permitting(rule)) for pattern, rule in permission if pattern not in named))

    def permission_of(self, name: str) -> Selected:
        """The rules with `decision: allow` that override a denial of this layer; none if no denial
        matches, or if a denial wins."""
        denials = _most_exact(self._denials, name)
        exact = self._exact.get(name)
        if not denials or (exact is not None and exact.decision is Verdict.DENY):
            return ()
        if exact is not None and exact.decision is Verdict.ALLOW:
            return ((name, exact),)
        permissions = _most_exact(self._permissions, name)
        return permissions if permissions and _exactness(permissions) > _exactness(denials) else ()


def _most_exact(globs: Sequence[_Glob], name: str) -> Selected:
    """The first matching glob and those of equal precedence; `globs` are in order of precedence."""
    found: list[tuple[str, ToolRule]] = []
    length = 0
    for glob in globs:
        if found and len(glob.prefix) < length:
            break
        if glob.fits(name):
            found.append((glob.pattern, glob.rule))
            length = len(glob.prefix)
    return tuple(found)


def _permitting(rule: ToolRule) -> ToolRule:
    return ToolRule(decision=Verdict.ALLOW, overridable=rule.overridable)


def _exactness(selected: Selected) -> int:
    return len(literal_prefix(selected[0][0]))


@lru_cache(maxsize=4_096)
def _expression(pattern: str) -> re.Pattern[str]:
    """Compiled once: a layer may have a thousand globs, and every turn of a run looks at them."""
    return re.compile(translate(pattern))


def is_glob(pattern: str) -> bool:
    """Whether a pattern matches more than one name."""
    return _WILD.search(pattern) is not None


def literal_prefix(pattern: str) -> str:
    """The part of a pattern before its first wildcard."""
    wild = _WILD.search(pattern)
    return pattern if wild is None else pattern[: wild.start()]


def fitting(pattern: str, names: Iterable[str]) -> Iterator[str]:
    """The names that a name or glob matches, whatever other patterns say. Fast, because there may
    be very many names."""
    prefix, expression = literal_prefix(pattern), _expression(pattern)
    return (name for name in names if name.startswith(prefix) and expression.match(name) is not None)
