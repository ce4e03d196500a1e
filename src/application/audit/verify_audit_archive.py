"""VerifyAuditArchive: check that archived audit entries are unchanged and that none is missing."""

from dataclasses import dataclass

from application.audit.ports import ArchivedAudit, ArchivedPart
from domain.audit.chain import ChainKeys
from domain.audit.chain_check import BrokenLink, ChainCheck, ChainProblem
from domain.ids import OrganizationId


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPart:
    """A file whose entries are not as they were sealed, and the first of them."""

    name: str
    first: BrokenLink


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingPart:
    """Numbers of entries that are in no file, though those around them are."""

    organization_id: OrganizationId
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedRange:
    """The first and the last number of an organization in all files."""

    organization_id: OrganizationId
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """`damaged` files are not as they were written. `unchecked` entries are sealed under an unknown
    key: files and order are checked, their seals are not."""

    files: int
    entries: int
    ranges: tuple[ArchivedRange, ...]
    damaged: tuple[str, ...]
    broken: tuple[BrokenPart, ...]
    missing: tuple[MissingPart, ...]
    unchecked: int

    @property
    def ok(self) -> bool:
        return not (self.damaged or self.broken or self.missing or self.unchecked)


class VerifyAuditArchive:
    """Rules:
    - Each file must be as its manifest says, and its entries as they were sealed, in order.
    - The files of an organization must follow on each other. They may overlap: an archived part
      that was not removed is archived again. Two that end with the same number have the same last
      seal.
    - Files alone do not show that the first or the last of them are gone: the report names the
      first and last number of each organization, to be compared.
    """

    def __init__(self, *, archive: ArchivedAudit, keys: ChainKeys) -> None:
        self._archive = archive
        self._keys = keys

    async def execute(self) -> ArchiveReport:
        damaged: list[str] = []
        broken: list[BrokenPart] = []
        missing: list[MissingPart] = []
        entries = unchecked = 0
        names = await self._archive.names()
        ends: dict[OrganizationId, tuple[int, str]] = {}
        begins: dict[OrganizationId, int] = {}
        for name in names:
            part = await self._archive.read(name)
            if part is None:
                damaged.append(name)
                continue
            entries += len(part.links)
            first = part.links[0].link.number
            check = ChainCheck(self._keys.known, first - 1, part.previous_seal)
            problem = check.take(part.links)
            end, seal = ends.get(part.organization_id, (first - 1, part.previous_seal))
            if end < first - 1:
                missing.append(MissingPart(organization_id=part.organization_id, first=end + 1, last=first - 1))
            elif end == first - 1 and seal != part.previous_seal and problem is None:
                problem = _edited(part)
            elif end == part.links[-1].link.number and seal != part.links[-1].link.seal:
                problem = problem or _edited(part)
            if problem is not None:
                broken.append(BrokenPart(name=name, first=problem))
            unchecked += sum(check.unknown.values())
            last = part.links[-1].link
            begins[part.organization_id] = min(begins.get(part.organization_id, first), first)
            ends[part.organization_id] = max((end, seal), (last.number, last.seal))
        return ArchiveReport(
            files=len(names),
            entries=entries,
            ranges=tuple(
                ArchivedRange(organization_id=one, first=first, last=ends[one][0]) for one, first in begins.items()
            ),
            damaged=tuple(damaged),
            broken=tuple(broken),
            missing=tuple(missing),
            unchecked=unchecked,
        )


def _edited(part: ArchivedPart) -> BrokenLink:
    """The first entry does not follow on the one before it."""
    link = part.links[0].link
    return BrokenLink(number=link.number, event_id=link.event_id, problem=ChainProblem.EDITED)
