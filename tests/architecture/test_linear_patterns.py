"""Regular expressions of the service: none takes more than linear time, used as the source uses it,
since users, models and servers choose the text. Each is run on hostile texts made of its own
literals."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.processor_time import TooSlow, processor_time

SRC = Path(__file__).resolve().parents[2] / "src"
LENGTH = 100_000
"""Characters of a hostile text: quadratic time over it is half a second and more."""
BOUND_S = 0.25
"""Time on the processor for one text; linear patterns need a few milliseconds."""
_ANYWHERE = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})
_ANCHORED = frozenset({"match", "fullmatch"})
_FILLERS = ' aA0"\\-,\n./_%{('
_AFTER_LITERALS = ' a0"'
_LITERALS = re.compile(r"(?:\\[^A-Za-z0-9]|[^\\\[\](){}?*+|^$.])+")
_TRUSTED = {
    "infrastructure.llm.script_template": "patterns of the operator's script files",
    "infrastructure.llm.script_file": "patterns of the operator's script files",
}
"""Modules that compile patterns at run time, and whose patterns they are."""


def hostile_texts(pattern: str) -> Iterator[str]:
    """Long runs, the pattern's literals over and over, and each literal before a long run."""
    literals = [re.sub(r"\\(.)", r"\1", found) for found in _LITERALS.findall(pattern)]
    yield from (filler * LENGTH for filler in _FILLERS)
    for literal in dict.fromkeys(literals):
        yield (literal * LENGTH)[:LENGTH]
        for filler in _AFTER_LITERALS:
            yield f"{literal}{filler * LENGTH}\0"
            yield f"{literal}{filler}" * (LENGTH // (len(literal) + 1))


def is_linear(pattern: "re.Pattern[str] | re.Pattern[bytes]", uses: frozenset[str]) -> bool:
    """Whether every hostile text is done with in time. `uses` are the methods of the pattern that
    are called."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    try:
        for text in hostile_texts(source):
            with processor_time(BOUND_S):
                _run(pattern, text, anchored=not uses & _ANYWHERE)
    except TooSlow:
        return False
    return True


def _run(pattern: "re.Pattern[str] | re.Pattern[bytes]", text: str, *, anchored: bool) -> None:
    methods = ("match", "fullmatch") if anchored else ("findall",)
    for method in methods:
        getattr(pattern, method)(text if isinstance(pattern.pattern, str) else text.encode("latin-1"))


@cache
def calls(path: Path) -> dict[str, frozenset[str]]:
    """The methods that a module calls, by the name of what they are called of."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return {name: frozenset(methods) for name, methods in found.items()}


def modules() -> list[str]:
    """Modules of the source that use regular expressions."""
    return sorted(
        path.relative_to(SRC).with_suffix("").as_posix().replace("/", ".")
        for path in SRC.rglob("*.py")
        if re.search(r"^import re$", path.read_text(encoding="utf-8"), re.MULTILINE)
    )


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("name", modules())
def test_the_patterns_of_a_module_take_linear_time(name: str) -> None:
    module = importlib.import_module(name)
    used = calls(Path(str(module.__file__)))
    patterns = {key: value for key, value in vars(module).items() if isinstance(value, re.Pattern)}
    slow = [
        key
        for key, pattern in patterns.items()
        if not is_linear(pattern, used.get(key, frozenset()) & (_ANYWHERE | _ANCHORED))
    ]
    assert slow == []


def test_patterns_are_compiled_from_what_the_source_says() -> None:
    """A pattern made of somebody's text could be of any kind."""
    made = set()
    for path in SRC.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "re.compile" in text else ():
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"):
                continue
            names = {part.id for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)}
            if any(name.islower() for name in names - {"translate"}):
                made.add(path.relative_to(SRC).with_suffix("").as_posix().replace("/", "."))
    # selection: globs through fnmatch, which makes each star atomic; names and globs are short.
    assert made - {"domain.policy.selection"} == set(_TRUSTED)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\{\{(.*?)\}\}",
        r"\(reference [^)]*\)",
        r"=\s*[\"']?\s*([A-Z]+)",
        r"([A-Za-z_][A-Za-z0-9_-]*)\s*=",
        r"\$\{[^}]*\}",
        r"(?:[^\n]*\n)*?data: ?",
    ],
)
def test_a_pattern_that_starts_over_within_a_run_is_found(pattern: str) -> None:
    assert not is_linear(re.compile(pattern), frozenset({"search"}))
