"""The rules of the project that import-linter and ruff cannot say, as pure functions over a source
tree.

Each check takes the checkout's root and returns violations; test_source_rules.py runs them here and
on made-up trees.
"""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

LAYERS = ("domain", "application", "infrastructure", "interfaces")
CODE_FOLDERS = ("src", "tests", "benchmarks", "demo")
MAX_LINES = 400

DOORS = ("infrastructure.container", "infrastructure.lifecycle", "infrastructure.settings")
"""What `interfaces` may import of `infrastructure`."""

CONTAINER = Path("src/infrastructure/container.py")
CONTAINERS = Path("src/infrastructure/containers")
ASSEMBLY = Path("src/infrastructure/assembly")
SETTINGS = Path("src/infrastructure/settings.py")
CLI = Path("src/interfaces/cli")
LOADED_ON_USE = (
    Path("src/interfaces/console/entry.py"),
    Path("src/interfaces/explorer/guides.py"),
    Path("src/interfaces/http/protocols_entry.py"),
    Path("src/interfaces/http/scim/entry.py"),
)

IMPURE_MODULES = (
    {"glob", "io", "os", "pathlib", "shutil", "sqlite3", "tempfile"}
    | {"http", "select", "socket", "ssl", "urllib"}
    | {"asyncio", "concurrent", "multiprocessing", "signal", "subprocess", "threading"}
    | {"random", "secrets", "time", "uuid"}
)
"""Standard modules that do I/O, or read the clock or a source of randomness: times and ids are
arguments in `domain`."""

CLOCK_CALLS = frozenset({"now", "today", "utcnow"})
ENVIRONMENT_NAMES = frozenset({"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"})
VAGUE_NAMES = frozenset({"base", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"})


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Source:
    """One Python file; `path` is relative to the checkout's root."""

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> "tuple[Import, ...]":
        return tuple(imports_in(self.nodes))

    @property
    def layer(self) -> str | None:
        parts = self.path.parts
        return parts[1] if parts[0] == "src" and len(parts) > 1 and parts[1] in LAYERS else None

    @property
    def length(self) -> int:
        """In lines."""
        return len(self.text.splitlines())

    def violation(self, line: int, message: str) -> Violation:
        return Violation(self.path.as_posix(), line, message)


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `module` is absolute (`""` where relative), `name` set for
    `from module import name`."""

    line: int
    module: str
    name: str | None
    is_indented: bool

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module

    def reaches(self, module: str) -> bool:
        return any(target == module or target.startswith(f"{module}.") for target in (self.module, self.dotted))


def read_sources(root: Path) -> Iterator[Source]:
    """Every Python file of the project under `root`, in path order. One at a time: trees of all
    files take a gigabyte."""
    paths = sorted(
        path
        for folder in CODE_FOLDERS
        for path in (root / folder).rglob("*.py")
        if not {"node_modules", "__pycache__"} & set(path.parts)
    )
    return (_read(path, root) for path in paths)


def _read(path: Path, root: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path=path.relative_to(root), text=text, tree=ast.parse(text, filename=str(path)))


def imports_in(nodes: Iterable[ast.AST]) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, None, node.col_offset > 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "" if node.level else node.module or ""
            yield from (Import(node.lineno, module, alias.name, node.col_offset > 0) for alias in node.names)


def layers_point_inwards(source: Source) -> Iterator[Violation]:
    """interfaces → infrastructure → application → domain; interfaces enter infrastructure by its
    doors only."""
    if source.layer is None:
        return
    outward = LAYERS[LAYERS.index(source.layer) + 1 :]
    for found in source.imports:
        if found.root in outward:
            yield source.violation(found.line, f"{source.layer} imports {found.dotted}, a layer further out")
        elif (
            source.layer == "interfaces"
            and found.root == "infrastructure"
            and not any(found.reaches(door) for door in DOORS)
        ):
            yield source.violation(found.line, f"interfaces import {found.dotted}; only {', '.join(DOORS)} are open")


def inner_layers_use_the_standard_library_only(source: Source) -> Iterator[Violation]:
    if source.layer not in {"domain", "application"}:
        return
    for found in source.imports:
        if found.root and found.root not in sys.stdlib_module_names and found.root not in LAYERS:
            yield source.violation(found.line, f"{source.layer} imports {found.root}, which is not standard library")


def domain_does_no_io(source: Source) -> Iterator[Violation]:
    """`domain` opens nothing and asks neither the clock nor a source of randomness."""
    if source.layer != "domain":
        return
    for found in source.imports:
        if found.root in IMPURE_MODULES:
            yield source.violation(found.line, f"domain imports {found.root}; I/O, time and ids are arguments")
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_CALLS:
            yield source.violation(node.lineno, f"domain calls {ast.unparse(node.func)}(); time is an argument")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"input", "open"}:
            yield source.violation(node.lineno, f"domain calls {node.func.id}(); it does no I/O")


def only_the_container_injects(source: Source) -> Iterator[Violation]:
    if source.path.is_relative_to(CONTAINERS) or source.layer is None:
        return
    for found in source.imports:
        if found.root == "dependency_injector":
            yield source.violation(found.line, f"dependency_injector is imported in {CONTAINERS} alone")
        elif found.reaches("infrastructure.containers") and source.path != CONTAINER:
            yield source.violation(found.line, f"a slice of the container is taken elsewhere than in {CONTAINER}")


def only_settings_read_the_environment(source: Source) -> Iterator[Violation]:
    if source.path == SETTINGS or source.layer is None:
        return
    message = f"the environment is read in {SETTINGS} alone"
    for node in source.nodes:
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ENVIRONMENT_NAMES
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
        ):
            yield source.violation(node.lineno, message)
    for found in source.imports:
        if found.module == "os" and found.name in ENVIRONMENT_NAMES:
            yield source.violation(found.line, message)


def nothing_hides_behind_type_checking(source: Source) -> Iterator[Violation]:
    imported = {found.line for found in source.imports if found.name == "TYPE_CHECKING"}
    used = {node.lineno for node in source.nodes if isinstance(node, ast.Attribute) and node.attr == "TYPE_CHECKING"}
    for line in sorted(imported | used):
        yield source.violation(line, "a TYPE_CHECKING block hides a cycle")


def imports_stand_at_the_top(source: Source) -> Iterator[Violation]:
    """Except the CLI's command loaders, the builders of heavy adapters, the way into the console,
    and the guides."""
    if source.path in LOADED_ON_USE or source.path.is_relative_to(ASSEMBLY) or source.path.is_relative_to(CLI):
        return
    if not any(found.is_indented for found in source.imports):
        return
    lines = {
        found.line
        for function in source.nodes
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for found in imports_in(ast.walk(function))
    }
    for line in sorted(lines):
        yield source.violation(line, "an import inside a function")


def packages_are_imported_without_src(source: Source) -> Iterator[Violation]:
    for found in source.imports:
        if found.root == "src":
            yield source.violation(found.line, f"imports {found.module}; the packages stand directly under src/")


def names_say_what_a_file_owns(source: Source) -> Iterator[Violation]:
    for part in source.path.with_suffix("").parts:
        if VAGUE_NAMES & set(part.lower().split("_")):
            yield source.violation(1, f"{part!r} does not say what it owns")


RULES: tuple[Callable[[Source], Iterator[Violation]], ...] = (
    layers_point_inwards,
    inner_layers_use_the_standard_library_only,
    domain_does_no_io,
    only_the_container_injects,
    only_settings_read_the_environment,
    nothing_hides_behind_type_checking,
    imports_stand_at_the_top,
    packages_are_imported_without_src,
    names_say_what_a_file_owns,
)


def overlong_files(lengths: Mapping[str, int], allowed: Mapping[str, str]) -> list[Violation]:
    """Files over MAX_LINES that `allowed` (path → reason) does not name, and names there that are
    no longer needed."""
    too_long = [
        Violation(path, MAX_LINES + 1, f"{length} lines; a file over {MAX_LINES} answers more than one question")
        for path, length in lengths.items()
        if length > MAX_LINES and not allowed.get(path, "").strip()
    ]
    stale = [
        Violation(path, 1, f"excused from {MAX_LINES} lines without need")
        for path in allowed
        if lengths.get(path, 0) <= MAX_LINES
    ]
    return sorted(too_long + stale)
