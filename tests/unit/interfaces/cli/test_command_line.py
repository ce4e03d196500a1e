"""The tree of commands: help, light start, wrong usage."""

import io
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from domain.errors import Violation, conflict, invalid
from interfaces.cli.api import ServiceApi
from interfaces.cli.app import build_app, build_outline, invoke
from interfaces.cli.failures import ServiceUnreachable
from interfaces.cli.session import Session
from interfaces.cli.terminal import Terminal
from tests.unit.interfaces.cli.fake_service import FakeService

HEAVY = ("litestar", "sqlalchemy", "mcp", "httpx", "pydantic", "uvicorn", "msgspec", "yaml", "rich", "asyncio")


def commands() -> list[list[str]]:
    """Every command, and every group, as one types it."""
    found: list[list[str]] = [[]]
    pending: list[tuple[list[str], object]] = [([], get_command(build_app()))]
    while pending:
        path, command = pending.pop()
        for name, child in getattr(command, "commands", {}).items():
            found.append([*path, name])
            pending.append(([*path, name], child))
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    outcome = FakeService().run(*command, "--help")
    assert outcome.exit_code == 0
    shown = capsys.readouterr().out
    assert "Example" in shown
    assert " ".join(["dragoman", *command]) in shown


@pytest.mark.parametrize("group", [[], *(command for command in commands() if len(command) == 1)], ids=" ".join)
def test_summaries_fit_a_line_of_80_columns(
    group: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    FakeService().run(*group, "--help")
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.endswith("...") and "[ARGS]" not in line] == []
    assert max(map(len, shown.splitlines())) <= 80


def test_the_tree_is_what_the_contract_names() -> None:
    names = {" ".join(command) for command in commands()}
    assert names >= {
        "serve", "init", "open", "chat", "usage", "run-show", "run-cancel", "run-resume", "run start", "run list", "run show",
        "run cancel", "run resume", "run retry", "thread list", "thread create", "thread delete", "approval show", "org show",
        "agent delete", "agent enable", "agent disable", "agent versions", "agent rollback", "mcp update", "doctor", "thread show", "tool list", "audit list",
        "mcp add", "mcp list", "mcp show", "mcp tools", "mcp test", "agent apply", "agent list", "agent show",
        "key create", "key list", "key revoke",
    }  # fmt: skip


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom interfaces.cli import main\nsys.argv = ['dragoman', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print(*sorted(name for name in sys.modules if '.' not in name), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=150)
    assert "Usage: dragoman" in done.stdout
    assert set(HEAVY) & set(done.stderr.split()) == set()


def test_help_of_the_tree_is_shown_from_an_outline_that_says_what_the_commands_say() -> None:
    shown = [CliRunner().invoke(app, ["--help"]) for app in (build_outline(), build_app())]
    assert [result.exit_code for result in shown] == [0, 0]
    assert shown[0].output == shown[1].output
    assert "approval" in shown[0].output
    assert "run-resume" not in shown[0].output


def test_an_outline_loads_no_command() -> None:
    code = (
        "import sys\nfrom typer.main import get_command\nfrom interfaces.cli.app import build_outline\nget_command(build_outline())\n"
        "print(*(name for name in sys.modules if name.startswith('interfaces.cli.commands.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=150)
    assert done.stdout.split() == []


def test_a_command_that_is_not_the_first_argument_is_never_a_mere_outline() -> None:
    harness = FakeService()
    assert harness.run("--", "doctor", "--nope").exit_code == 2


def test_a_command_loads_no_other() -> None:
    code = (
        "import sys\nfrom interfaces.cli import main\nsys.argv = ['dragoman', 'key', 'list', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print(*(name for name in sys.modules if name.startswith('interfaces.cli.commands.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=150)
    assert done.stdout.splitlines()[-1].split() == ["interfaces.cli.commands.key"]


def test_commands_read_the_views_of_the_api_without_the_frameworks_that_serve_it() -> None:
    code = (
        "import pkgutil, sys\nfrom importlib import import_module\nfrom interfaces.cli import commands\n"
        "for module in pkgutil.iter_modules(commands.__path__):\n"
        "    import_module(f'interfaces.cli.commands.{module.name}')\n"
        "print(*sorted(name for name in sys.modules if '.' not in name))\n"
        "print(*sorted(name for name in sys.modules if name.endswith('.views')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=150)
    loaded, views = (line.split() for line in done.stdout.splitlines())
    assert "interfaces.http.runs.views" in views
    assert (set(HEAVY) - {"msgspec"}) & set(loaded) == set()


def test_the_module_is_the_command_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "interfaces.cli", "--version"], capture_output=True, text=True, check=True, timeout=150
    )
    assert done.stdout.startswith("dragoman ")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nope"], "nope"),
        (["run", "start"], "INPUT"),
        (["run", "hi", "--nope"], "--nope"),
        (["audit", "list", "--limit", "0"], "--limit"),
        (["audit", "list", "--since", "yesterday"], "yesterday"),
        (["mcp", "add", "time"], "--url"),
        (["mcp", "add", "x", "--url", "http://x", "--header", "oops"], "--header"),
        (["run", "hi", "--agent", "guide", "--server", "time"], "--server"),
        (["run", "resume", "run_1", "--result", "oops"], "--result"),
        (["run", "resume", "run_1", "--answer", "oops"], "--answer"),
        (["run", "resume", "run_1", "--answer", "call_1=red"], "--answer"),
        (["run", "resume", "run_1"], "--answer"),
        (["thread", "show", ""], "id"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: list[str], named: str) -> None:
    service = FakeService()
    outcome = service.run(*arguments)
    assert outcome.exit_code == 2
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) == 1
    assert named in outcome.err
    assert service.requests == []


def test_a_group_without_a_command_shows_its_help() -> None:
    outcome = FakeService().run("mcp")
    assert outcome.exit_code == 2
    assert "Commands:" in outcome.err


@pytest.mark.parametrize(
    ("failure", "exit_code", "text"),
    [
        (conflict("home_in_use", "Another process owns HOME."), 1, "Another process owns HOME."),
        (invalid("x", "Wrong.", Violation(path="a.b", message="must be c")), 2, "Wrong. a.b: must be c"),
        (ServiceUnreachable("http://x", "no connection"), 1, "http://x"),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_an_expected_failure_is_one_line(failure: BaseException, exit_code: int, text: str) -> None:
    @asynccontextmanager
    async def failing(*, worker: bool, creates: bool = False) -> AsyncIterator[ServiceApi]:
        raise failure
        yield  # type: ignore[unreachable] # makes it a generator

    out, err = io.StringIO(), io.StringIO()
    assert invoke(["agent", "list"], Session(terminal=Terminal(out=out, err=err), connect=failing)) == exit_code
    assert out.getvalue() == ""
    assert text in err.getvalue()
    assert len(err.getvalue().splitlines()) == 1
