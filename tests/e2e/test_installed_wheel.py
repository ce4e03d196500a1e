"""The wheel in an environment of its own, beside a project that has packages named like
Dragoman's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.completeness import beyond
from tests.e2e.service import ROOT
from tests.integration.mcp.install.uv import UV

pytestmark = [pytest.mark.timeout(1200), pytest.mark.requirement("U1")]
NAMES = ("domain", "application", "infrastructure", "interfaces")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """A command without the tests' own environment; what it printed. Skips where no registry can be
    reached."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "DRAGOMAN_", "OPENAI_", "ANTHROPIC_", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, timeout=900,
    )  # fmt: skip
    if any(said in done.stderr for said in ("No matching distribution", "Connection", "Failed to fetch")):
        pytest.skip(beyond("no package registry can be reached"))
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, as from a fresh clone."""
    place = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, place / name)
    for name in ("src", "docs"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "dist", ".", cwd=place)
    [built] = (place / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it requires, and nothing else: by pipx and its pip, or
    by pip where there is no uv to fetch pipx."""
    place = tmp_path_factory.mktemp("installed")
    if UV.exists():
        pipx = (UV, "tool", "run", "-q", "--python", sys.executable, "pipx")
        folders = {"PIPX_HOME": str(place), "PIPX_BIN_DIR": str(place / "commands")}
        run(*pipx, "install", "-q", "--python", sys.executable, wheel, cwd=place, **folders)
        return place / "venvs" / "dragoman"
    run(sys.executable, "-m", "venv", "env", cwd=place)
    run(place / "env" / "bin" / "python", "-m", "pip", "install", "-q", wheel, cwd=place)
    return place / "env"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with its own packages of these names, which fail when they are imported."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('the wrong package')", encoding="utf-8")
    return tmp_path


def test_one_name_is_importable_and_its_packages_are_found_first(installed: Path, project: Path) -> None:
    [packages] = (installed / "lib").glob("python3*/site-packages")
    assert (packages / "dragoman").is_dir()
    assert not [name for name in NAMES if (packages / name).exists()]
    assert not (packages / "pytest").exists()
    documentation = packages / "dragoman/packages/interfaces/explorer/documentation"
    assert (documentation / "guides/cli.md").is_file()
    assert (documentation / "reference/policy-rules.md").is_file()
    for command in ((installed / "bin" / "dragoman",), (installed / "bin" / "python", "-m", "dragoman")):
        assert run(*command, "--version", cwd=project, PYTHONPATH=str(project)).startswith("dragoman ")


def test_from_nothing_to_an_answer_with_processes_of_its_own(installed: Path, project: Path) -> None:
    dragoman = installed / "bin" / "dragoman"
    where = {"PYTHONPATH": str(project), "DRAGOMAN_HOME": str(project / "home")}
    assert "You said: Hello!" in run(dragoman, "init", "--yes", cwd=project, **where)
    thread = run(dragoman, "thread", "create", cwd=project, **where).strip()
    (project / "page.html").write_text("<html><body><h1>Bridges</h1><p>They span rivers.</p></body></html>")
    run(dragoman, "source", "add", thread, "page.html", cwd=project, **where)
    assert "searchable" in run(dragoman, "source", "list", thread, cwd=project, **where)


@pytest.mark.skipif(not UV.exists(), reason=beyond("there is no uv"))
def test_one_command_of_uv_leads_from_the_wheel_to_the_first_answer(wheel: Path, project: Path) -> None:
    dragoman = (UV, "tool", "run", "-q", "--python", sys.executable, "--from", wheel, "dragoman")
    said = run(*dragoman, "init", "--yes", cwd=project, DRAGOMAN_HOME=str(project / "home"))
    assert "You said: Hello!" in said
