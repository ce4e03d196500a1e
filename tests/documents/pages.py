"""The fenced blocks of the documents, with the marks that say how a block is to be run.

A mark is an HTML comment right above the fence. It says how to treat what readers see, and never
has a command that they do not see:

    <!-- not run: WHY -->      the block cannot run here
    <!-- serves -->            its command is a service, which the blocks after it talk to
    <!-- exits N -->           its last command ends with N, as the page says
    <!-- file: PATH -->        not run but saved as a file of that name, which the page names
    <!-- shape: NAME -->       what a YAML, JSON or TOML block is (tests/documents/shapes.py)

An id such as `apr_0123` stands for one of the reader's own: it is the one that a command printed
where the page first has it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.architecture.published_files import tracked_files

ROOT = Path(__file__).resolve().parents[2]
RUN = {"console", "sh", "python"}
SHAPED = {"yaml", "json", "toml"}
SHOWN = {"text"}
LARGE_SECTIONS = ("MCP servers", "Control")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)\s*$")
_MARK = re.compile(r"<!-- (?P<kind>not run|serves|exits|file|shape)(?::?\s+(?P<value>.*?))?\s*-->", re.DOTALL)
_HEADING = re.compile(r"^#+ (?P<title>.+)$")
BEGINNINGS = ("README.md", "docs/first-run.md")
"""Pages that begin with nothing. All others begin where README's first steps end, and say so."""
_NOT_PAGES = ("docs/REQUIREMENTS.md", "docs/adr/template.md", "CHANGELOG.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block. `marks` has the value of each by its kind, `above` the text since the block
    before."""

    page: str
    line: int
    section: str
    above: str
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether the test of its page runs it, or writes it for others to use."""
        return "not run" not in self.marks and (self.language in RUN or "file" in self.marks)


def pages() -> list[str]:
    """Every document with blocks, by its path in the checkout."""
    documents = [path.as_posix() for path in tracked_files(ROOT) if path.suffix == ".md"]
    return [
        name
        for name in documents
        if name.startswith(("docs/", "examples/")) or "/" not in name
        if name not in _NOT_PAGES and blocks(name)
    ]


def runnable(section: str | None) -> list[str]:
    """The pages with something to run in a section of the site's navigation; with None, those in
    neither of the two large ones. Tests are shared out by file, so that pages run side by side."""
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    sections = {
        name: {f"docs/{page}" for entry in entries for page in entry.values()}
        for part in navigation
        for name, entries in part.items()
        if name in LARGE_SECTIONS
    }
    wanted = set(pages())
    found = wanted & sections[section] if section else wanted - set().union(*sections.values())
    return sorted(page for page in found if any(block.runs for block in blocks(page)))


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return list(_blocks(page, (ROOT / page).read_text(encoding="utf-8")))


def _blocks(page: str, text: str) -> Iterator[Block]:
    lines = text.splitlines()
    number, above, section = 0, 0, ""
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            if heading := _HEADING.match(lines[number]):
                section = heading["title"]
            number += 1
            continue
        indent, begins = opening["indent"], number + 1
        end = next(at for at in range(begins, len(lines)) if lines[at].strip() == "```")
        yield Block(
            page=page,
            line=number + 1,
            section=section,
            above="\n".join(lines[above:number]),
            language=opening["language"],
            text="\n".join(line.removeprefix(indent) for line in lines[begins:end]) + "\n",
            marks=_marks("\n".join(lines[above:number])),
        )
        number = above = end + 1


def _marks(text: str) -> dict[str, str]:
    """The marks between the block before and this one."""
    return {mark["kind"]: (mark["value"] or "").strip() for mark in _MARK.finditer(text)}
