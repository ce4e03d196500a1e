"""Pinning: tools are used as they were approved; new or changed definitions are quarantined.

Registering a server approves its first catalog, except for definitions that are held for review.
Listing approves nothing after that.
"""

import difflib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from domain.hidden_text import escaped, revealed
from domain.mcp.catalog import McpCatalog, McpToolDefinition, Rejection

DIFF_LIMIT = 16_000
"""Most characters of a difference that are shown."""
_CONTEXT_LINES = 3
_COMPARED_LINES = 400


class DefinitionState(StrEnum):
    """Whether a tool may be used. The values are part of the public contract."""

    APPROVED = "approved"
    QUARANTINED = "quarantined"
    """Not before a person has approved the definition."""
    REJECTED = "rejected"
    """Not: a person has refused the definition. It waits for no one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTool:
    """A tool as its server describes it now, its approved definition, if any, and the refusal of
    the present one, if any."""

    definition: McpToolDefinition
    approved: McpToolDefinition | None
    rejection: Rejection | None = None

    @property
    def state(self) -> DefinitionState:
        same = self.approved is not None and self.approved.is_same_as(self.definition)
        if same:
            return DefinitionState.APPROVED
        return DefinitionState.QUARANTINED if self.rejection is None else DefinitionState.REJECTED

    @property
    def diff(self) -> str:
        """The change that an approval would accept, as a unified difference of indented JSON; empty
        if approved."""
        return definition_diff(self.approved, self.definition)


def pinned_tool(catalog: McpCatalog, name: str) -> PinnedTool | None:
    """The tool with this name in a stored catalog."""
    definition = catalog.find(name)
    return None if definition is None else as_pinned(catalog, definition)


def as_pinned(catalog: McpCatalog, tool: McpToolDefinition) -> PinnedTool:
    """A tool of a stored catalog."""
    return PinnedTool(
        definition=tool,
        approved=catalog.quarantined.get(tool.name, tool),
        rejection=catalog.rejected.get(tool.name),
    )


def pinned_tools(catalog: McpCatalog) -> tuple[PinnedTool, ...]:
    """All tools of a stored catalog, in its order."""
    return tuple(as_pinned(catalog, tool) for tool in catalog.tools)


class FirstUse(StrEnum):
    """What happens to the first definitions of servers that are not trusted. The values are
    public."""

    APPROVE = "approve"
    """They are approved, except for those that hide text."""
    REVIEW = "review"
    """They wait for approval."""

    def holds(self, definition: McpToolDefinition) -> bool:
        return self is FirstUse.REVIEW or definition.hides_text


def approves_all(_: McpToolDefinition) -> bool:
    """Nothing is held: for trusted servers."""
    return False


class Pinning:
    """A listed catalog, compared with the approved definitions. Without a `previous` catalog all
    tools are approved, except those that `holds` says to hold for review.

    A tool that is no longer listed becomes dormant. It is usable again when it returns with its
    approved definition. A rejection holds while the rejected definition is listed.
    """

    def __init__(
        self,
        listed: McpCatalog,
        previous: McpCatalog | None,
        *,
        holds: Callable[[McpToolDefinition], bool] = FirstUse.APPROVE.holds,
    ) -> None:
        self._previous = previous
        self._holds = holds
        self.catalog = listed
        """The listed catalog, with approvals after the last of the `steps`."""
        self.news: list[PinnedTool] = []
        """Tools that entered quarantine, or whose quarantined definition changed, in the catalog's
        order."""
        self.has_same_definitions = False
        """Whether the previous catalog has the same tools, in the same order and states."""

    def steps(self) -> Iterator[None]:
        """Compares a tool in each step: there may be 10,000 in a list."""
        if self._previous is None:
            yield from self._approve_first()
        else:
            yield from self._compare(self._previous)
        yield from self._find_news()
        if self._previous is not None:
            yield from self._find_differences(self._previous)

    def _approve_first(self) -> Iterator[None]:
        quarantined: dict[str, McpToolDefinition | None] = {}
        for tool in self.catalog.tools:
            if self._holds(tool):
                quarantined[tool.name] = None
            yield
        self.catalog = replace(self.catalog, quarantined=quarantined)

    def _compare(self, previous: McpCatalog) -> Iterator[None]:
        approved = {tool.name: tool for tool in previous.dormant}
        for tool in previous.tools:
            if (former := previous.quarantined.get(tool.name, tool)) is not None:
                approved[tool.name] = former
            yield
        quarantined: dict[str, McpToolDefinition | None] = {}
        gone = dict(approved)
        rejected: dict[str, Rejection] = {}
        for tool in self.catalog.tools:
            gone.pop(tool.name, None)
            known = approved.get(tool.name)
            if known is None or not known.is_same_as(tool):
                quarantined[tool.name] = known
                if (rejection := _rejection_of(tool, previous)) is not None:
                    rejected[tool.name] = rejection
            yield
        dormant = tuple(gone[name] for name in sorted(gone))
        self.catalog = replace(
            self.catalog, quarantined=quarantined, dormant=dormant, rejected=rejected, revision=previous.revision
        )

    def _find_news(self) -> Iterator[None]:
        previous, quarantined = self._previous, self.catalog.quarantined
        for tool in self.catalog.tools if quarantined else ():
            yield
            if tool.name not in quarantined:
                continue
            before = previous.find(tool.name) if previous is not None and tool.name in previous.quarantined else None
            if before is None or not before.is_same_as(tool):
                self.news.append(PinnedTool(definition=tool, approved=quarantined[tool.name]))

    def _find_differences(self, previous: McpCatalog) -> Iterator[None]:
        catalog = self.catalog
        if catalog.quarantined.keys() != previous.quarantined.keys():
            return
        if (len(catalog.tools), len(catalog.dormant)) != (len(previous.tools), len(previous.dormant)):
            return
        now, before = chain(catalog.tools, catalog.dormant), chain(previous.tools, previous.dormant)
        for one, other in zip(now, before, strict=True):
            if (one.name, one.pin_version, one.digest) != (other.name, other.pin_version, other.digest):
                return
            yield
        self.has_same_definitions = True


def pinned(
    listed: McpCatalog,
    previous: McpCatalog | None,
    *,
    holds: Callable[[McpToolDefinition], bool] = FirstUse.APPROVE.holds,
) -> McpCatalog:
    """The listed catalog with approvals, compared at once."""
    pinning = Pinning(listed, previous, holds=holds)
    for _ in pinning.steps():
        continue
    return pinning.catalog


def with_approved(catalog: McpCatalog, name: str) -> McpCatalog:
    """The catalog with the current definition of the tool approved."""
    return replace(
        catalog,
        quarantined={tool: old for tool, old in catalog.quarantined.items() if tool != name},
        rejected={tool: rejection for tool, rejection in catalog.rejected.items() if tool != name},
    )


def with_rejected(catalog: McpCatalog, name: str, rejection: Rejection) -> McpCatalog:
    """The catalog with the current definition of the quarantined tool rejected."""
    return replace(catalog, rejected={**catalog.rejected, name: rejection})


def _rejection_of(tool: McpToolDefinition, previous: McpCatalog) -> Rejection | None:
    """The refusal of this definition."""
    before = previous.find(tool.name) if tool.name in previous.rejected else None
    return None if before is None or not before.is_same_as(tool) else previous.rejected[tool.name]


def definition_diff(approved: McpToolDefinition | None, current: McpToolDefinition) -> str:
    """A unified difference of two definitions as indented JSON, at most about DIFF_LIMIT
    characters.

    The description is compared line by line. Invisible characters (zero-width, bidirectional, tags)
    are escaped, because models read what people cannot see.
    """
    before = [] if approved is None else _lines(approved)
    after = _lines(current)
    first, last = _common_ends(before, after)
    middle_before, middle_after = before[first : len(before) - last], after[first : len(after) - last]
    # Comparing is quadratic: for a definition built to be slow, only the beginning of the change is
    # shown.
    is_cut = max(len(middle_before), len(middle_after)) > _COMPARED_LINES and approved is not None
    if is_cut:
        middle_before, middle_after = middle_before[:_COMPARED_LINES], middle_after[:_COMPARED_LINES]
    lead = max(0, first - _CONTEXT_LINES)
    tail = [] if is_cut else before[len(before) - last :][:_CONTEXT_LINES]
    shown = difflib.unified_diff(
        [*before[lead:first], *middle_before, *tail],
        [*before[lead:first], *middle_after, *tail],
        "approved" if approved is not None else "/dev/null",
        "current",
        n=_CONTEXT_LINES,
        lineterm="",
    )
    # Line numbers are removed: they count from the start of the comparison and refer to no file.
    text = "\n".join("@@" if line.startswith("@@") else line for line in shown)
    if len(text) > DIFF_LIMIT or is_cut:
        return f"{text[:DIFF_LIMIT]}\n[the rest of the difference is not shown: it is too long]"
    return text


def _lines(tool: McpToolDefinition) -> list[str]:
    shown = {**tool.as_json(), "description": [*tool.description.split("\n")]}
    if tool.display:
        shown["display"] = tool.display
    else:
        shown.pop("display", None)
    text = json.dumps(shown, indent=2, sort_keys=True, ensure_ascii=False)
    return [_visible(line) for line in text.split("\n")]


def _visible(line: str) -> str:
    if not line.isprintable():
        line = "".join(character if character.isprintable() else escaped(character) for character in line)
    return revealed(line)


def _common_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """The number of equal lines at the beginning and, after those, at the end."""
    shorter = min(len(before), len(after))
    first = 0
    while first < shorter and before[first] == after[first]:
        first += 1
    last = 0
    while last < shorter - first and before[-1 - last] == after[-1 - last]:
        last += 1
    return first, last
