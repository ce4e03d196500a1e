"""docs/performance.md: sections that are measured, each replaced by the newest measurement of its
part, and sections that people write, which are kept as they are."""

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.figures import summary

FILE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
_SECTION = re.compile(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)")


def machine() -> str:
    """Where it was measured."""
    model = re.search(r"^model name\s*:\s*(.*)$", _text("/proc/cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", _text("/proc/meminfo"), re.MULTILINE)
    described = [
        f"{os.cpu_count()} cores" + (f" ({model[1].strip()})" if model else ""),
        *([f"{int(memory[1]) / 1024**2:.0f} GB of memory"] if memory else []),
        f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        f"Python {platform.python_version()}",
    ]
    return ", ".join(described)


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""


def section(title: str, about: str, lines: Iterable[str], *, took_s: float) -> str:
    """What was measured just now."""
    at, load = datetime.now(UTC), os.getloadavg()[0]
    stamp = f"_Measured at default settings {at:%Y-%m-%d} in {took_s:.0f} s, load {load:.1f}, on {machine()}._"
    return "\n".join([f"## {title}", "", about, "", *lines, "", stamp, ""])


def document(titles: Mapping[str, str], measured: Mapping[str, str], former: str) -> str:
    """The page. `titles` has the heading of each part by its name, in the order of the page;
    `measured` the sections of parts that were measured now. Of other parts the page says what it
    said; what stands under headings of its own is kept."""
    before: dict[str, str] = dict(_SECTION.findall(former))
    sections = [
        measured.get(name) or (f"## {title}\n{before[title].rstrip()}\n" if title in before else "")
        for name, title in titles.items()
    ]
    measurable = set(titles.values())
    by_hand = [f"## {title}\n{text.rstrip()}\n" for title, text in before.items() if title not in measurable]
    return "\n".join([*_head(list(titles), sections), *(text for text in sections if text), *by_hand])


def _head(names: Sequence[str], sections: Sequence[str]) -> list[str]:
    return [
        "# Performance",
        "",
        "Written by `make bench BENCH_ARGS='--long --write'`. The last line of a section says when it was measured, and where."
        " Service, model, MCP server and load share the cores. Services are measured at default settings, with the log that users get; a section says where it sets something else. Sections whose last line does not say `at default settings` were measured"
        " earlier, with the log off."
        " Each figure stands beside a floor that was measured in the same run. Where the load was much above the number of cores"
        " other work shared them too: times are longer then, ratios hold."
        " Budgets of calls and runs per second were set where a bare relay makes 9,600 calls/s at concurrency 16; elsewhere its"
        " calls in the same run are the yardstick ([ADR 0077](adr/0077-budgets-of-time-beside-the-machine.md)). One part alone: `--only PART`; parts: "
        + ", ".join(f"`{name}`" for name in names)
        + ". Sections that are not of a part are written by hand, and stay.",
        "",
        summary(sections),
        "",
    ]
