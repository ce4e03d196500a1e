"""The tree keeps the rules of source_rules.py, and each rule does catch what it is there for."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.architecture import source_rules as rules
from tests.architecture.source_rules import MAX_LINES, RULES, Source, Violation

ROOT = Path(__file__).parents[2]

# Path → why this file may be longer than MAX_LINES. A reason is an argument, not a wish.
LONG_FILES: dict[str, str] = {}

Rule = Callable[[Source], Iterator[Violation]]


def listed(violations: list[Violation]) -> str:
    return "\n".join(map(str, sorted(violations)))


@dataclass
class Project:
    """What one reading of all files finds."""

    layers: set[str | None] = field(default_factory=set)
    lengths: dict[str, int] = field(default_factory=dict)
    violations: dict[str, list[Violation]] = field(default_factory=lambda: defaultdict(list))


@pytest.fixture(scope="module")
def project() -> Project:
    project = Project()
    for source in rules.read_sources(ROOT):
        project.layers.add(source.layer)
        project.lengths[source.path.as_posix()] = source.length
        for rule in RULES:
            project.violations[rule.__name__].extend(rule(source))
    return project


def test_the_project_has_sources_in_every_layer(project: Project) -> None:
    assert project.layers >= set(rules.LAYERS)


@pytest.mark.parametrize("rule", [rule.__name__ for rule in RULES])
def test_the_project_keeps_the_rule(rule: str, project: Project) -> None:
    assert not project.violations[rule], listed(project.violations[rule])


def test_no_file_of_the_project_is_overlong(project: Project) -> None:
    violations = rules.overlong_files(project.lengths, LONG_FILES)
    assert not violations, listed(violations)


def violations_of(rule: Rule, root: Path, path: str, text: str) -> list[int]:
    """The lines on which `rule` objects to `text` at `path`."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    (source,) = rules.read_sources(root)
    assert source.path.as_posix() == path
    return sorted(violation.line for violation in rule(source))


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (rules.layers_point_inwards, "src/domain/run.py", "import application.runs.ports"),
        (rules.layers_point_inwards, "src/application/run.py", "from infrastructure import settings"),
        (rules.layers_point_inwards, "src/infrastructure/run.py", "from interfaces.cli import main"),
        (rules.layers_point_inwards, "src/interfaces/http/app.py", "from infrastructure.persistence import engine"),
        (rules.layers_point_inwards, "src/interfaces/http/app.py", "import infrastructure"),
        (rules.layers_point_inwards, "src/interfaces/http/app.py", "from infrastructure.container_parts import x"),
        (rules.inner_layers_use_the_standard_library_only, "src/domain/run.py", "import pydantic"),
        (rules.inner_layers_use_the_standard_library_only, "src/application/run.py", "from httpx import URL"),
        (rules.inner_layers_use_the_standard_library_only, "src/application/run.py", "def f():\n import yaml"),
        (rules.domain_does_no_io, "src/domain/run.py", "import asyncio"),
        (rules.domain_does_no_io, "src/domain/run.py", "from uuid import uuid4"),
        (rules.domain_does_no_io, "src/domain/run.py", "import datetime\nx = datetime.datetime.now(datetime.UTC)"),
        (rules.domain_does_no_io, "src/domain/run.py", "open('file')"),
        (rules.only_the_container_injects, "src/interfaces/http/app.py", "from dependency_injector import wiring"),
        (rules.only_the_container_injects, "src/infrastructure/llm/container.py", "import dependency_injector"),
        (rules.only_the_container_injects, "src/infrastructure/container.py", "import dependency_injector"),
        (
            rules.only_the_container_injects,
            "src/infrastructure/lifecycle.py",
            "from infrastructure.containers.runs import Runs",
        ),
        (
            rules.only_settings_read_the_environment,
            "src/infrastructure/mcp/transports/launch.py",
            "import os\nos.environ['A']",
        ),
        (rules.only_settings_read_the_environment, "src/interfaces/cli/run.py", "import os\nos.getenv('A')"),
        (rules.only_settings_read_the_environment, "src/infrastructure/llm/x.py", "from os import environ"),
        (rules.nothing_hides_behind_type_checking, "src/application/run.py", "from typing import TYPE_CHECKING as T"),
        (
            rules.nothing_hides_behind_type_checking,
            "src/application/run.py",
            "import typing\nif typing.TYPE_CHECKING: ...",
        ),
        (rules.imports_stand_at_the_top, "src/application/run.py", "def f():\n    import json"),
        (
            rules.imports_stand_at_the_top,
            "src/interfaces/http/app.py",
            "class A:\n  async def f(self):\n    import json",
        ),
        (rules.packages_are_imported_without_src, "tests/unit/test_run.py", "from src.domain import runs"),
        (rules.packages_are_imported_without_src, "src/application/run.py", "import src.domain"),
        (rules.names_say_what_a_file_owns, "src/domain/utils.py", ""),
        (rules.names_say_what_a_file_owns, "src/infrastructure/mcp/connection_manager.py", ""),
        (rules.names_say_what_a_file_owns, "src/infrastructure/common/paths.py", ""),
        (rules.names_say_what_a_file_owns, "tests/helpers.py", ""),
    ],
)
def test_a_broken_rule_is_reported_on_its_line(rule: Rule, path: str, text: str, tmp_path: Path) -> None:
    assert violations_of(rule, tmp_path, path, text) == [max(1, len(text.splitlines()))]


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (rules.layers_point_inwards, "src/interfaces/http/app.py", "from infrastructure.container import Container"),
        (rules.layers_point_inwards, "src/interfaces/http/app.py", "from infrastructure import settings"),
        (rules.layers_point_inwards, "src/infrastructure/llm/x.py", "import domain.runs.run, application.runs.ports"),
        (rules.inner_layers_use_the_standard_library_only, "src/application/run.py", "import asyncio, domain.runs"),
        (rules.inner_layers_use_the_standard_library_only, "src/infrastructure/llm/x.py", "import httpx"),
        (rules.domain_does_no_io, "src/domain/run.py", "import json, re, hashlib"),
        (rules.domain_does_no_io, "src/application/run.py", "import asyncio"),
        (
            rules.only_the_container_injects,
            "src/infrastructure/containers/runs.py",
            "from dependency_injector import providers\nfrom infrastructure.containers.storage import Storage",
        ),
        (
            rules.only_the_container_injects,
            "src/infrastructure/container.py",
            "from infrastructure.containers.runs import Runs",
        ),
        (rules.only_settings_read_the_environment, "src/infrastructure/settings.py", "import os\nos.environ['A']"),
        (rules.imports_stand_at_the_top, "src/infrastructure/assembly/mcp.py", "def f():\n    import json"),
        (rules.imports_stand_at_the_top, "src/interfaces/cli/run.py", "def f():\n    import json"),
        (rules.names_say_what_a_file_owns, "src/infrastructure/database.py", ""),
    ],
)
def test_what_a_rule_allows_is_not_reported(rule: Rule, path: str, text: str, tmp_path: Path) -> None:
    assert violations_of(rule, tmp_path, path, text) == []


RUN = "src/domain/run.py"


def test_the_length_of_a_file_is_its_lines(tmp_path: Path) -> None:
    (tmp_path / "src/domain").mkdir(parents=True)
    (tmp_path / RUN).write_text("x = 1\n" * 7, encoding="utf-8")
    assert [source.length for source in rules.read_sources(tmp_path)] == [7]


def test_a_file_over_the_limit_is_reported() -> None:
    (violation,) = rules.overlong_files({RUN: MAX_LINES + 1}, {})
    assert violation.path == RUN


def test_a_file_at_the_limit_is_not_reported() -> None:
    assert rules.overlong_files({RUN: MAX_LINES}, {}) == []


def test_a_reason_excuses_an_overlong_file() -> None:
    too_long = {RUN: MAX_LINES + 1}
    assert rules.overlong_files(too_long, {RUN: "one state machine, read as one table"}) == []
    assert rules.overlong_files(too_long, {RUN: " "}) != []


def test_an_excuse_that_is_no_longer_needed_is_reported() -> None:
    excuses = {RUN: "was long once", "src/domain/gone.py": "was there once"}
    assert {violation.path for violation in rules.overlong_files({RUN: MAX_LINES}, excuses)} == set(excuses)
