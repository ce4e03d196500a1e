"""The command of the interpreter for `code_execution`, which confines itself before the interpreter
starts."""

import logging
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from infrastructure.confinement import confined_program

logger = logging.getLogger(__name__)

_PROGRAM = "monty"
_TRIAL_S = 30.0
_RUN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from infrastructure.confinement import confined_program as c; c.main()"
_SOURCE = Path(confined_program.__file__).parents[2]


@contextmanager
def confined_interpreter() -> Iterator[str | None]:
    """The path of the command, valid within the context; None, for the interpreter as it is, where
    it does not work."""
    program = shutil.which(_PROGRAM, path=sysconfig.get_path("scripts"))
    with TemporaryDirectory(prefix="dragoman-") as folder:
        command = Path(folder) / _PROGRAM
        started = (sys.executable, "-I", "-S", "-c", _RUN, str(_SOURCE), program or _PROGRAM)
        command.write_text(f'#!/bin/sh\nexec {shlex.join(started)} "$@"\n', encoding="utf-8")
        command.chmod(0o700)
        works = program is not None and _works(command)
        if not works:
            logger.warning("the interpreter of code_execution cannot be confined here, and runs without")
        yield str(command) if works else None


def _works(command: Path) -> bool:
    try:
        done = subprocess.run([command, "--version"], capture_output=True, timeout=_TRIAL_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
