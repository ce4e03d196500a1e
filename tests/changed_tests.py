"""The tests that a change may break: `python -m tests.changed_tests --base main -- -n 3`, or
`make test-changed`.

A Python file selects the tests that need it (`tests/import_graph.py`), a page its own test, any
other file the tests of its folder (`FOLDERS`).
What a path cannot show, such as a service that another process starts, is left to the whole suite
before a change lands.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from pathlib import Path, PurePosixPath

import grimp

from tests.documents.pages import runnable
from tests.import_graph import import_graph, is_test

ROOT = Path(__file__).parents[1]
COMPOSITION = (
    "infrastructure.container",
    "infrastructure.assembly",
    "infrastructure.lifecycle",
    "interfaces.asgi",
    "interfaces.cli.app",
    "interfaces.console.app",
    "interfaces.http.app",
    "interfaces.service",
    "tests.contract.conftest",
    "tests.contract.sql_legs",
    "tests.contract.stores",
    "tests.databases",
    "tests.doubles.state",
)
"""What begins so imports nearly all of the code. Of the tests behind them, those over HTTP are all
selected, others by the feature that their name has."""
OVER_HTTP = "tests.integration.http."

SMOKE = (
    "tests/architecture",
    "tests/documents/test_blocks.py",
    "tests/e2e/test_cli_in_process.py",
    "tests/e2e/test_first_calls.py",
    "tests/e2e/test_first_story.py",
    "tests/e2e/test_gateway_agents.py",
    "tests/e2e/test_starting.py",
)
"""Always selected: the rules of the code, and a service with its command line, a run, an approval
and the gateway."""

EVERYDAY = ("tests/unit", "tests/contract", "tests/integration")
FOLDERS = {
    "src/infrastructure/persistence/migrations": ("tests/contract", "tests/integration/persistence"),
    "src/infrastructure/persistence/engine": ("tests/contract", "tests/integration/persistence"),
    "src/interfaces/console": ("tests/integration/http/test_console*.py", "tests/unit/interfaces/console"),
    "src/interfaces/cli": ("tests/unit/interfaces/cli",),
    "src/interfaces/explorer": ("tests/integration/http/test_system_routes.py",),
    "src/infrastructure/confinement": ("tests/integration/confinement",),
    "src/infrastructure/mcp/transports": ("tests/integration/mcp/test_stdio*.py",),
    "src": EVERYDAY,
    "clients": ("tests/e2e/test_client_python.py", "tests/e2e/test_client_typescript.py"),
    "examples": ("tests/documents/test_pages_other.py",),
    "benchmarks": ("tests/unit/benchmarks",),
    "tests/fixtures": ("tests/e2e/test_saved_runs.py",),
    "pyproject.toml": EVERYDAY,
    "requirements": EVERYDAY,
    "tests/conftest.py": EVERYDAY,
}
"""Tests of a folder whose files are reached by their names, not by imports; the first folder that
has the file."""

PAGES = {
    "Control": "test_pages_control.py",
    "MCP servers": "test_pages_servers.py",
    None: "test_pages_other.py",
}
"""Files of the tests of pages, by the section of the site."""
_ROOMS = frozenset({"http", "persistence", "execution", "commands", "routes", "transports", "connections", "wrappers"})
"""Folders that name a technique, not a feature."""


def selected(changed: Iterable[str], graph: grimp.ImportGraph, root: Path = ROOT) -> list[str]:
    """Arguments of pytest, sorted. `changed` has paths of the checkout."""
    found = set(SMOKE)
    near = _without_composition(graph)
    for path in map(PurePosixPath, changed):
        module = _module(path)
        needing = set(_needing(module, graph, near)) if module in graph.modules else set()
        found.update(needing)
        if path.suffix == ".md":
            found.update(_tests_of_page(str(path)))
        else:
            found.update(_tests_of_folder(path, root, has_own=bool(needing)))
    return sorted(path for path in found if not _is_inside(path, found) and (root / path.partition("::")[0]).exists())


def _module(path: PurePosixPath) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "src" else parts) if path.suffix == ".py" else ""


def _without_composition(graph: grimp.ImportGraph) -> grimp.ImportGraph:
    near = deepcopy(graph)
    for module in graph.modules:
        if module.startswith(COMPOSITION):
            near.remove_module(module)
    return near


def _needing(module: str, graph: grimp.ImportGraph, near: grimp.ImportGraph) -> Iterator[str]:
    """The files of tests that need the module, directly or through others."""
    reached = graph.find_downstream_modules(module) | {module}
    close = near.find_downstream_modules(module) | {module} if module in near.modules else reached
    features = _features(module)
    for test in filter(is_test, reached):
        kind = test.split(".")[1]
        if kind in ("e2e", "documents") and not module.startswith("tests."):
            continue
        by_name = kind in ("contract", "integration") and features & set(re.split(r"[._]", test))
        if test in close or test.startswith(OVER_HTTP) or by_name:
            yield f"{test.replace('.', '/')}.py"


def _features(module: str) -> set[str]:
    """The words of a module's folders, in singular and plural, as tests may have them in their
    names."""
    folders = {word for folder in module.split(".")[1:-1] if folder not in _ROOMS for word in folder.split("_")}
    return folders | {folder.removesuffix("s") for folder in folders}


def _tests_of_page(page: str) -> Iterator[str]:
    for section, file in PAGES.items():
        if page in runnable(section):
            yield f"tests/documents/{file}::test_the_commands_of_a_page_work_as_written[{page}]"


def _tests_of_folder(path: PurePosixPath, root: Path, *, has_own: bool) -> Iterator[str]:
    """Tests of the first folder that has the file; of all layers only for a file that no test
    needs."""
    folder = next((folder for folder in FOLDERS if path.is_relative_to(folder)), None)
    if folder is None or (has_own and folder == "src") or _is_empty(path, root):
        return
    for pattern in FOLDERS[folder]:
        yield from (found.relative_to(root).as_posix() for found in root.glob(pattern))


def _is_empty(path: PurePosixPath, root: Path) -> bool:
    """Whether the file is the `__init__` of a package, which here has a docstring alone."""
    return path.name == "__init__.py" and len(ast.parse((root / path).read_text(encoding="utf-8")).body) <= 1


def _is_inside(path: str, found: Collection[str]) -> bool:
    """Whether a folder or a file that has this test is selected already."""
    file = PurePosixPath(path.partition("::")[0])
    return any(str(parent) in found for parent in file.parents) or ("::" in path and str(file) in found)


def changed_files(base: str, root: Path = ROOT) -> list[str]:
    """Files that differ from where this branch left `base`, committed or not. Deleted files are
    left out."""
    fork = _git(root, "merge-base", base, "HEAD")[0]
    known = _git(root, "diff", "--name-only", "--no-renames", "--diff-filter=d", fork)
    return sorted({*known, *_git(root, "ls-files", "--others", "--exclude-standard")})


def _git(root: Path, *arguments: str) -> list[str]:
    answered = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return answered.stdout.splitlines()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.changed_tests", description=__doc__)
    parser.add_argument("--base", default="main", help="branch or commit to compare with (main)")
    parser.add_argument("--list", action="store_true", help="show the selection only")
    parser.add_argument("pytest", nargs="*", metavar="ARGUMENT", help="arguments of pytest, after --")
    given = parser.parse_args(arguments)
    changed = changed_files(given.base)
    tests = selected(changed, import_graph())
    sys.stderr.write(f"{len(changed)} changed files, {len(tests)} files and folders of tests\n")
    if given.list:
        sys.stdout.write("\n".join([*tests, ""]))
        return 0
    return subprocess.run([sys.executable, "-m", "pytest", *given.pytest, *tests], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
