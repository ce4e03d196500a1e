"""Phrases that hide who does what or name no term of the glossary, with what to write instead."""

import re
from collections.abc import Iterator
from pathlib import Path

REWRITES = {
    r"anew": "again",
    r"whoever|whosoever": "the role: a caller, an operator, each client",
    r"nobody|somebody": "no one, a person, or the role: another worker, an operator",
    r"(?:is|are) told(?! apart)": "the event or the answer that says it: the client gets, the log has",
    r"is to be had|are to be had": "is available",
    r"of (?:its|their) own": "its own X, a separate X",
    r"of (?:which|whom)": "two sentences",
    r"as the port says": "the rule itself",
    r"a fire": "a trigger, a scheduled run",
    r"doorbell": "signal",
    r"toolbox": "catalog, toolset",
    r"upkeep": "periodic task, maintenance",
    r"goes on|go on(?! without)": "continues",
    r"comes? to nothing": "has no effect",
}
"""Pattern → what to write. Found as whole words, in any case."""

_GAP = r"[\s#>]+"
"""Between two words: a space, or a line's end with what begins the next line of a comment or a
quotation."""
_PATTERN = re.compile(rf"\b(?:{'|'.join(REWRITES)})\b".replace(" ", _GAP), re.IGNORECASE)
_FOREIGN = frozenset({"vendor", "node_modules", "__pycache__", "explorer", "dist"})
_SUFFIXES = frozenset({".py", ".md", ".html", ".js", ".css"})
_QUOTED = re.compile(r"`[^`\n]*`")


def riddles_in(text: str) -> Iterator[tuple[int, str]]:
    """Line number and phrase of each hit, also of a phrase that a line break divides. Code between
    backticks is left out."""
    prose = _QUOTED.sub(lambda found: " " * len(found[0]), text)
    for found in _PATTERN.finditer(prose):
        yield text.count("\n", 0, found.start()) + 1, found[0]


def files_of(*places: Path) -> Iterator[Path]:
    """The files with prose in these files and directories, but for those of other projects."""
    for place in places:
        found = [place] if place.is_file() else sorted(place.rglob("*"))
        for path in found:
            if path.suffix in _SUFFIXES and not _FOREIGN & set(path.parts):
                yield path
