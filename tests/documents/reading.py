"""What a reader does with a block: tells commands from what they print, and types the ids that were
printed before."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.documents.pages import Block

Ids = dict[str, str]
"""By the names that a page has for them: `apr_0123` is the approval that was printed where the page
first has `apr_0123`."""
_ID = re.compile(r"\b[a-z]+_0\d{3}\b")
_PART = re.compile(r"(…|\b[a-z]+_0\d{3}\b)")


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console block, and the lines that it prints there. `…` stands for anything."""

    text: str
    printed: tuple[str, ...]


def commands(block: Block) -> list[Command]:
    """The commands of a block. One of the shell's own form is one; in a console each begins behind
    `$ `, continues behind a backslash, and is followed by what it prints."""
    if block.language != "console":
        return [Command(block.text, ())]
    found: list[Command] = []
    continued = False
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), ()))
        elif continued:
            found[-1] = Command(f"{found[-1].text}\n{line}", ())
        else:
            assert found, f"{block.place}: a console block begins with a command, behind `$ `"
            found[-1] = Command(found[-1].text, (*found[-1].printed, line))
            continue
        continued = found[-1].text.endswith("\\")
    return found


def own(text: str, ids: Ids) -> str:
    """A text of the page with the reader's own ids."""
    for name in _ID.findall(text):
        assert name in ids, f"no command before printed {name}, which a reader has to type here:\n{text}"
    return _ID.sub(lambda found: ids[found[0]], text)


def unread(printed: Sequence[str], output: str, ids: Ids) -> str | None:
    """The first of these lines that the output does not have, each after the one before. Ids that
    appear here first are remembered."""
    rest = iter(" ".join(line.split()) for line in output.splitlines())
    for line in printed:
        pattern = re.compile(_pattern(" ".join(line.split()), ids))
        found = next((match for said in rest if (match := pattern.fullmatch(said))), None)
        if found is None:
            return line
        ids.update(found.groupdict())
    return None


def _pattern(line: str, ids: Ids) -> str:
    words, new = [], set[str]()
    for part in _PART.split(line):
        if part == "…":
            words.append(".*")
        elif _ID.fullmatch(part) is None or part in ids:
            words.append(re.escape(ids.get(part, part)))
        elif part in new:
            words.append(f"(?P={part})")
        else:
            new.add(part)
            words.append(rf"(?P<{part}>{part.partition('_')[0]}_\w+)")
    return "".join(words)
