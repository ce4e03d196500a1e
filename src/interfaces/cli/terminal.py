"""Output of commands: data on stdout, remarks on stderr; rich on a terminal, else plain aligned
text."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TextIO

from domain.hidden_text import revealed
from domain.json_value import JsonValue
from interfaces.cli.moments import readable_times, relative_times
from interfaces.cli.table_fit import fitted

# Control characters of models and servers could control the user's terminal; tab and newline stay.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_GAP = "  "


def _now() -> datetime:
    return datetime.now(UTC)


class Terminal:
    """Two text streams and their capabilities. On a terminal times are shown with their distance
    from now; elsewhere they stay as the service has them."""

    def __init__(self, *, out: TextIO, err: TextIO, now: Callable[[], datetime] = _now) -> None:
        self._out = out
        self._err = err
        self._now = now

    @property
    def is_interactive(self) -> bool:
        """Whether both streams are terminals."""
        return self._out.isatty() and self._err.isatty()

    def line(self, text: str = "") -> None:
        """Data, on stdout."""
        print(printable(text), file=self._out)

    def note(self, text: str) -> None:
        """A remark, on stderr."""
        shown = readable_times(text, now=self._now()) if self._err.isatty() else text
        print(printable(shown), file=self._err, flush=True)

    def stream(self, text: str) -> None:
        """A piece of text on stdout, at once and without a line end."""
        print(printable(text), end="", file=self._out, flush=True)

    def styled(self, text: str, *, style: str) -> None:
        """A line on stdout, in a rich style where stdout is a terminal."""
        if not self._out.isatty():
            self.line(text)
            return
        from rich.console import Console

        said = readable_times(text, now=self._now())
        Console(file=self._out).print(printable(said), style=style, markup=False, highlight=False, soft_wrap=True)

    def json(self, document: JsonValue) -> None:
        """One JSON document."""
        print(json.dumps(document, indent=2, ensure_ascii=False), file=self._out)

    def fields(self, fields: Mapping[str, str]) -> None:
        """Names with values, one per line, without empty values."""
        shown = {name: value for name, value in fields.items() if value}
        width = max(map(len, shown), default=0)
        for name, value in shown.items():
            said = readable_times(value, now=self._now()) if self._out.isatty() else value
            self.line(f"{name:<{width}}{_GAP}{said}")

    def progress_bar(self, label: str) -> "ProgressBar":
        """A bar on stderr, for work that a person waits for."""
        return ProgressBar(self._err, label)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
        """Rows under headings; without rows the remark `empty`."""
        if not rows:
            self.note(empty)
            return
        cells = [[one_line(cell) for cell in row] for row in rows]
        if self._out.isatty():
            self._fitted_table(columns, cells)
            return
        headed = [[column.upper() for column in columns], *cells]
        widths = [max(len(row[index]) for row in headed) for index in range(len(columns))]
        for row in headed:
            self.line(_GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())

    def _fitted_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich.console import Console

        cells = [[relative_times(cell, now=self._now()) for cell in row] for row in rows]
        width = shutil.get_terminal_size().columns
        table = fitted([column.upper() for column in columns], cells, width=width)
        widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
        console = Console(file=self._out)
        for number, row in enumerate((table.columns, *table.rows)):
            line = _GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            console.print(line, style="" if number else "bold", markup=False, highlight=False, soft_wrap=True)
        if table.dropped:
            self.note(f"Not shown at this width: {', '.join(table.dropped).lower()} (--json shows all).")


class ProgressBar:
    """A bar with its current step; it disappears on stop."""

    def __init__(self, stream: TextIO, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
        self._progress = Progress(*columns, console=Console(file=stream), transient=True)
        self._label = printable(label)
        self._task = self._progress.add_task(self._label, total=100)

    def start(self) -> None:
        self._progress.start()

    def update(self, step: str, percent: int) -> None:
        self._progress.update(self._task, description=f"{self._label}: {printable(step)}", completed=percent)

    def stop(self) -> None:
        self._progress.stop()


def printable(text: str) -> str:
    """Text with control characters replaced, and hidden characters escaped."""
    return revealed(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n")))


def one_line(text: str, limit: int | None = None) -> str:
    """Text on a single line, cut to `limit` characters."""
    joined = " ".join(printable(text).split())
    return joined if limit is None or len(joined) <= limit else f"{joined[: limit - 1]}…"


def short_json(document: object, limit: int = 80) -> str:
    """JSON on one line, cut to `limit` characters."""
    return one_line(json.dumps(document, ensure_ascii=False), limit)


def counted(number: int, noun: str) -> str:
    """`1 turn` or `2 turns`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def duration(milliseconds: float) -> str:
    """`12 ms`, `3.4 s` or `2 min 5 s`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
