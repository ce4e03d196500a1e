"""The selection of tests by what was changed: by what they need, by the words of a feature, by
pages and by folders."""

import subprocess
from pathlib import Path

import grimp
import pytest

from tests.changed_tests import FOLDERS, PAGES, SMOKE, changed_files, selected
from tests.import_graph import narrow, with_conftests

ROOT = Path(__file__).parents[2]
IMPORTS = (
    ("application.runs.start_run", "domain.runs.run"),
    ("interfaces.cli.commands.run", "interfaces.cli.terminal"),
    ("application.sources.queries", "domain.sources.source"),
    ("infrastructure.containers.runs", "application.runs.start_run"),
    ("infrastructure.containers.sources", "application.sources.queries"),
    ("infrastructure.container", "infrastructure.containers.runs"),
    ("infrastructure.container", "infrastructure.containers.sources"),
    ("tests.composition", "infrastructure.container"),
    ("tests.unit.runs.test_start_run", "application.runs.start_run"),
    ("tests.unit.sources.test_queries", "application.sources.queries"),
    ("tests.integration.http.test_threads_and_runs", "tests.composition"),
    ("tests.integration.http.test_sources", "tests.composition"),
    ("tests.integration.mcp.test_runs", "tests.composition"),
    ("tests.integration.mcp.test_source_tools", "tests.composition"),
    ("tests.e2e.test_sources", "tests.composition"),
    ("tests.e2e.test_soak", "tests.e2e.service"),
    ("tests.contract.test_sources", "tests.contract.paging"),
    ("tests.contract.conftest", "application.sources.queries"),
    ("tests.unit.conftest", "application.system.clock"),
)
FILES = (
    "tests/unit/interfaces/cli/test_run.py",
    "tests/unit/runs/builders.py",
    "tests/integration/persistence/test_upgrade.py",
    "tests/unit/benchmarks/test_x.py",
)


@pytest.fixture
def graph() -> grimp.ImportGraph:
    graph = grimp.ImportGraph()
    for importer, imported in IMPORTS:
        graph.add_import(importer=importer, imported=imported)
    with_conftests(graph)
    return graph


@pytest.fixture
def checkout(graph: grimp.ImportGraph, tmp_path: Path) -> Path:
    """Files of the graph's tests."""
    tests = [f"{name.replace('.', '/')}.py" for name in graph.modules if name.startswith("tests.")]
    for name in (*tests, *FILES):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def test_tests_that_import_a_changed_module_are_selected_through_others_too(
    graph: grimp.ImportGraph, checkout: Path
) -> None:
    assert "tests/unit/runs/test_start_run.py" in selected(["src/domain/runs/run.py"], graph, checkout)


def test_behind_the_composition_tests_over_http_are_selected_and_others_by_the_name_of_the_feature(
    graph: grimp.ImportGraph, checkout: Path
) -> None:
    assert selected(["src/application/sources/queries.py"], graph, checkout) == [
        "tests/contract/test_sources.py",
        "tests/integration/http/test_sources.py",
        "tests/integration/http/test_threads_and_runs.py",
        "tests/integration/mcp/test_source_tools.py",
        "tests/unit/sources/test_queries.py",
    ]


def test_a_change_of_the_composition_selects_all_tests_behind_it(graph: grimp.ImportGraph, checkout: Path) -> None:
    assert selected(["src/infrastructure/container.py"], graph, checkout) == [
        "tests/integration/http/test_sources.py",
        "tests/integration/http/test_threads_and_runs.py",
        "tests/integration/mcp/test_runs.py",
        "tests/integration/mcp/test_source_tools.py",
    ]


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("from domain.runs.run import Run\ndef ended(run: Run) -> Run:\n    again: Run = run\n    return again", False),
        ("from domain.runs.run import Run\nclass Store:\n    newest: Run", True),
        ("from domain.runs.run import Run\ndef started() -> object:\n    return Run()", True),
        ("from domain.runs.run import Run as run\ndef test_x(run): pass", True),
        ("from domain.runs import run\nSTATUS = run.QUEUED", True),
    ],
    ids=[
        "of a function alone",
        "of a field",
        "in a function",
        "as an argument, which may be a fixture",
        "whole module",
    ],
)
def test_a_name_is_needed_except_in_annotations(text: str, needs: bool) -> None:
    graph = grimp.ImportGraph()
    graph.add_import(importer="application.runs.ports", imported="domain.runs.run")
    narrow(graph, {"application.runs.ports": text})
    assert graph.direct_import_exists(importer="application.runs.ports", imported="domain.runs.run") is needs


def test_of_a_helper_a_test_needs_what_the_names_need_that_it_imports() -> None:
    texts = {
        "tests.builders": "from domain.runs.run import Run\nfrom domain.agents.agent import Agent\n"
        "START = 1\ndef a_run(): return Run(START)\ndef two_runs(): return [a_run(), a_run()]\ndef an_agent(): return Agent()",
        "tests.unit.test_runs": "from tests.builders import two_runs\ndef test_x(): two_runs()",
        "tests.unit.test_all": "from tests import builders\ndef test_x(): builders.an_agent()",
    }
    graph = grimp.ImportGraph()
    for name in ("domain.runs.run", "domain.agents.agent"):
        graph.add_import(importer="tests.builders", imported=name)
    for name in ("tests.unit.test_runs", "tests.unit.test_all"):
        graph.add_import(importer=name, imported="tests.builders")
    narrow(graph, texts)

    def tests_of(module: str) -> set[str]:
        return {name for name in graph.find_downstream_modules(module) if name in texts and name != "tests.builders"}

    assert tests_of("domain.runs.run") == {"tests.unit.test_runs", "tests.unit.test_all"}
    assert tests_of("domain.agents.agent") == {"tests.unit.test_all"}
    assert tests_of("tests.builders") == {"tests.unit.test_runs", "tests.unit.test_all"}


def test_a_changed_test_is_selected_and_so_are_those_that_import_what_tests_share(
    graph: grimp.ImportGraph, checkout: Path
) -> None:
    changed = ["tests/unit/sources/test_queries.py", "tests/e2e/service.py"]
    assert selected(changed, graph, checkout) == ["tests/e2e/test_soak.py", "tests/unit/sources/test_queries.py"]


def test_other_files_select_the_tests_of_their_folder(graph: grimp.ImportGraph, checkout: Path) -> None:
    revision = "src/infrastructure/persistence/migrations/versions/0099_new.py"
    assert selected([revision], graph, checkout) == ["tests/contract", "tests/integration/persistence"]
    assert selected(["src/interfaces/cli/commands/run.py"], graph, checkout) == ["tests/unit/interfaces/cli"]
    assert selected(["pyproject.toml"], graph, checkout) == ["tests/contract", "tests/integration", "tests/unit"]
    assert selected(["LICENSE"], graph, checkout) == []


def test_a_change_that_a_conftest_imports_selects_the_tests_of_its_folder(
    graph: grimp.ImportGraph, checkout: Path
) -> None:
    assert selected(["src/application/system/clock.py"], graph, checkout) == [
        "tests/unit/runs/test_start_run.py",
        "tests/unit/sources/test_queries.py",
    ]


def test_a_page_selects_its_own_test(graph: grimp.ImportGraph) -> None:
    page = "docs/guides/policy.md"
    test = f"tests/documents/test_pages_control.py::test_the_commands_of_a_page_work_as_written[{page}]"
    assert set(selected([page], graph)) == {*SMOKE, test}


def test_what_is_selected_by_name_exists() -> None:
    patterns = [*SMOKE, *(pattern for tests in FOLDERS.values() for pattern in tests)]
    assert [pattern for pattern in patterns if not list(ROOT.glob(pattern))] == []
    assert [file for file in PAGES.values() if not (ROOT / "tests/documents" / file).is_file()] == []


def test_files_of_commits_and_of_the_working_tree_are_changed_but_not_those_of_the_base(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def write(*names: str) -> None:
        for name in names:
            (tmp_path / name).write_text(name, encoding="utf-8")

    git("init", "-b", "main")
    write("before", "deleted")
    git("add", ".")
    git("commit", "-m", "before")
    git("checkout", "-b", "branch")
    write("committed")
    git("add", ".")
    git("commit", "-m", "branch")
    (tmp_path / "deleted").unlink()
    write("new")
    assert changed_files("main", tmp_path) == ["committed", "new"]
