"""The `dragoman` command in this process, for stories of many commands that are about what is kept
in HOME between them. It opens HOME as the real one does, and starts many times as fast; that the
real one does the same is shown by `test_cli_in_process`."""

import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from interfaces.cli.app import invoke
from interfaces.cli.connecting import connected
from interfaces.cli.session import Session
from interfaces.cli.terminal import Terminal
from tests.e2e.dragoman_process import Done, Dragoman


class DragomanHere(Dragoman):
    """Commands over one HOME. Nothing of the tester's environment reaches them, and nothing of
    theirs the tests."""

    def run(self, *arguments: str, exit_code: int = 0, **environment: str) -> Done:
        """Run a command to its end, which must come with this exit code."""
        done = self.outcome(*arguments, **environment)
        assert done.exit_code == exit_code, f"exit code {done.exit_code}\n{done.out}\n{done.err}"
        return done

    def run_in_a_process(self, *arguments: str, **environment: str) -> Done:
        """Run a command as the real one, for what depends on its process."""
        return super().run(*arguments, exit_code=0, **environment)

    def outcome(self, *arguments: str, **environment: str) -> Done:
        """Run a command to its end, whatever it is."""
        out, err = io.StringIO(), io.StringIO()
        with (
            _environment({**self.environment, **environment}),
            _own_logging(),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = invoke(arguments, Session(terminal=Terminal(out=out, err=err), connect=connected))
        assert "Traceback" not in err.getvalue(), err.getvalue()
        return Done(exit_code=code, out=out.getvalue(), err=err.getvalue())


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - variables.keys():
            patch.delenv(name)
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@contextmanager
def _own_logging() -> Iterator[None]:
    """A command sets up logging for its process; afterwards it is the tests' again."""
    root, levels = logging.getLogger(), {}
    handlers, level = root.handlers[:], root.level
    for name in (*logging.root.manager.loggerDict,):
        levels[name] = logging.getLogger(name).level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for name, former in levels.items():
            logging.getLogger(name).setLevel(former)
