"""VerifyRunArchive: check that archived runs and gateway calls are unchanged."""

from dataclasses import dataclass

from application.retention.ports import ArchivedRuns, FileState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArchiveReport:
    """Numbers of entries in files that are as they were written, and names of the other files. An
    entry may be in two files."""

    files: int
    runs: int
    events: int
    tool_calls: int
    gateway_calls: int
    damaged: tuple[str, ...]
    without_manifest: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not (self.damaged or self.without_manifest)


class VerifyRunArchive:
    """Rules:
    - Each file must be as its manifest says.
    - A file without its manifest is named apart: its writer was killed, and wrote or writes its
      entries to another file.
    - Files do not tell whether others were taken away: they have no seals.
    """

    def __init__(self, *, archive: ArchivedRuns) -> None:
        self._archive = archive

    async def execute(self) -> RunArchiveReport:
        names = await self._archive.names()
        found = {name: await self._archive.check(name) for name in names}
        return RunArchiveReport(
            files=len(names),
            runs=sum(one.runs for one in found.values()),
            events=sum(one.events for one in found.values()),
            tool_calls=sum(one.tool_calls for one in found.values()),
            gateway_calls=sum(one.gateway_calls for one in found.values()),
            damaged=tuple(name for name, one in found.items() if one.state is FileState.DAMAGED),
            without_manifest=tuple(name for name, one in found.items() if one.state is FileState.WITHOUT_MANIFEST),
        )
