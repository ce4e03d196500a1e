"""Paths that a confined process may use besides the system's: its runtime, and what its command
names."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from infrastructure.confinement.system_paths import TEMPORARY

_PARTS_OF_A_RUNTIME = ("bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg")
_PACKAGES = "node_modules"
_MARKS_OF_A_PROJECT = (_PACKAGES, "package.json", "pyproject.toml")
_MAX_LINKS = 8
_LONGEST_FIRST_LINE = 256
_NEVER = frozenset(
    Path("/", name)
    for name in (
        "",
        "boot",
        "dev",
        "etc",
        "home",
        "media",
        "mnt",
        "opt",
        "proc",
        "root",
        "run",
        "srv",
        "sys",
        "usr",
        "var",
    )
) | {Path(TEMPORARY)}
"""Directories of the system that are no program's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """Paths to read and execute, and paths to write, too."""

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()


class Protected:
    """Paths that no command opens by naming them: `private`, everything above, the user's home
    itself, and what is hidden in it."""

    def __init__(self, private: Iterable[Path], *, user_home: Path | None) -> None:
        self._private = tuple(path.resolve() for path in private)
        self._user_home = None if user_home is None else user_home.resolve()

    def covers(self, path: Path) -> bool:
        """Whether `path` is in or above a private path."""
        return any(path.is_relative_to(own) or own.is_relative_to(path) for own in self._private)

    def named(self, text: str, cwd: Path, *, beside: bool = True) -> tuple[Path, ...]:
        """What may be read of a command's argument: the directory; of a file what is `beside` it
        (its project, else its directory), else the file alone. Of a directory with something
        private in it: all else that is in it."""
        try:
            path = (cwd / text).resolve()
            around = (*_project_of(path), path.parent) if path.is_file() and beside else ()
            candidates = (*around, path) if path.exists() else ()
            found = next(filter(self._may_be_read, candidates), None)
            if found is None and path.is_dir() and path not in _NEVER and path != self._user_home:
                return tuple(child for child in path.iterdir() if self._may_be_read(child.resolve()))
        except (OSError, ValueError):
            return ()
        return () if found is None else (found,)

    def _may_be_read(self, path: Path) -> bool:
        if self.covers(path) or path in _NEVER or path.is_relative_to("/proc") or path.is_relative_to("/etc"):
            return False
        home = self._user_home
        if home is None or not path.is_relative_to(home):
            return home is None or not home.is_relative_to(path)
        return path != home and not path.relative_to(home).parts[0].startswith(".")


def _project_of(file: Path) -> tuple[Path, ...]:
    """The directory that has the packages of a program: above its node_modules, or with a project's
    file."""
    if _PACKAGES in file.parts:
        return (Path(*file.parts[: file.parts.index(_PACKAGES)]),)
    marked = (parent for parent in file.parents if any((parent / mark).exists() for mark in _MARKS_OF_A_PROJECT))
    return tuple(islice(marked, 1))


def runtime_of(command: str, search_path: str, *, changeable: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """The executable, with the libraries beside it of a runtime outside the system's directories (a
    virtual environment, an nvm, a pyenv), through all its links. Nothing for one in or through
    `changeable`: directories that confined processes write, where a link or a first line would open
    whatever it names."""
    found = shutil.which(command, path=search_path)
    paths: list[Path] = []
    link = None if found is None else Path(found).absolute()
    for _ in range(_MAX_LINKS):
        if link is None:
            break
        paths += [link, *_beside(link)]
        link = Path(os.path.normpath(link.parent / os.readlink(link))) if link.is_symlink() else None
    if found is not None:
        real = Path(found).resolve()
        paths += [real, *_beside(real), *_interpreter_of(real)]
    if any(is_in(path, changeable) for path in paths):
        return ()
    return tuple(dict.fromkeys(path for path in paths if not path.is_relative_to("/usr")))


def is_in(path: Path, directories: Iterable[Path]) -> bool:
    """Whether a path is in one of these, as it is written or by its links. So is what cannot be a
    path."""
    try:
        written, real = Path(os.path.normpath(path)), Path(os.path.realpath(path))
    except ValueError:
        return True
    return any(
        written.is_relative_to(each) or real.is_relative_to(each)
        for directory in directories
        for each in (directory, directory.resolve())
    )


def of_runtime(prefix: Path) -> tuple[Path, ...]:
    """The parts of a runtime: its commands and libraries, not what else is in the directory."""
    return tuple(prefix / part for part in _PARTS_OF_A_RUNTIME if (prefix / part).exists())


def _interpreter_of(script: Path) -> tuple[Path, ...]:
    """The runtime that the first line of a script names, unless it is searched on PATH."""
    with suppress(OSError, ValueError, IndexError), script.open("rb") as file:
        if file.read(2) == b"#!":
            interpreter = Path(file.readline(_LONGEST_FIRST_LINE).decode().split()[0])
            real = interpreter.resolve()
            return (interpreter, *_beside(interpreter), real, *_beside(real))
    return ()


def _beside(executable: Path) -> tuple[Path, ...]:
    prefix = executable.parent.parent
    if executable.parent.name == "shims":  # of a manager of versions (pyenv, mise), which has all of them beside
        return (prefix,)
    if executable.parent.name != "bin":
        return ()
    is_runtime = (prefix / "pyvenv.cfg").is_file() or (prefix / "lib" / "node_modules").is_dir()
    return of_runtime(prefix) if is_runtime or any(prefix.glob("lib/python3*")) else ()
