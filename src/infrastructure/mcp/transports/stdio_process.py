"""The process of a stdio server, started through `launcher.py`: spawn, detection of its end,
orderly stop. Used by `stdio.py`."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import anyio

from infrastructure.confinement.control_group import end_group, with_group
from infrastructure.confinement.leftovers import MARK, end_marked, new_mark
from infrastructure.confinement.memory_files import environment_bytes, memory_file
from infrastructure.confinement.process_group import NAMES
from infrastructure.mcp.transports.launcher import LAUNCHER
from infrastructure.mcp.transports.pipes import Descriptor, ReadPipe
from infrastructure.mcp.transports.spawn import Spawned, spawned
from infrastructure.mcp.transports.started_server import StartedServer, StartServer, describe_status

logger = logging.getLogger(__name__)

INHERITED_NAMES = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""Names of Dragoman's environment that servers inherit; none can be a secret."""

MARGIN_S = 1.0
"""Time for the launcher to act after its grace, and for the event loop to notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioCommand:
    """Start command of a server. `env` is added to the inherited names. `limits` are resource
    limits by their setrlimit(2) name without `RLIMIT_`, in lower case (`{"nofile": 1024, "cpu":
    60}`), and of the process with its descendants (`memory`, `processes`). `confinement` are the
    launcher's options that confine it, and `handed` descriptors that these name. Raises
    ValueError."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    limits: Mapping[str, int] = field(default_factory=lambda: {"core": 0})
    confinement: tuple[str, ...] = ()
    handed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.command:
            raise ValueError("command is empty")
        if any("\0" in text for text in (self.command, *self.args, *self.env, *self.env.values(), str(self.cwd))):
            raise ValueError("command, args, env and cwd may not hold NUL characters")
        if any(not name or "=" in name for name in self.env):
            raise ValueError("names in env may not be empty or hold '='")


class ServerProcess:
    """A started server. `on_exit` is called once, on the event loop, after the launcher and all
    below it have ended. A pidfd reports the end: asyncio's subprocesses can be cancelled between
    spawn and hand-over, and use a thread per process."""

    def __init__(
        self,
        process: Spawned,
        *,
        lifeline: int,
        mark: dict[str, str],
        group: str | None,
        on_exit: Callable[[], None],
    ) -> None:
        """Takes the process and the lifeline. `group` is the control group that the launcher makes.
        Raises OSError if no descriptor is left."""
        self._loop = asyncio.get_running_loop()
        self._on_exit = on_exit
        self._exited: asyncio.Future[int] = self._loop.create_future()
        self._interrupted: asyncio.CancelledError | None = None
        self._process, self._lifeline, self._mark, self._group = process, lifeline, mark, group
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._reap)

    @classmethod
    async def start(
        cls, command: StdioCommand, *, environment: Mapping[str, str], kill_grace_s: float, on_exit: Callable[[], None]
    ) -> "ServerProcess":
        """Raises OSError if the working directory does not exist, or no descriptor or process is
        available."""
        mark = new_mark()
        lifeline_end, lifeline = os.pipe()
        process: Spawned | None = None
        try:
            given = _inherited(environment) | dict(command.env) | mark
            confinement, group = with_group(command.confinement, mark[MARK])
            command = replace(command, confinement=confinement)
            process = await _launched(command, given, mark, lifeline_end, kill_grace_s)
            return cls(process, lifeline=lifeline, mark=mark, group=group, on_exit=on_exit)
        except BaseException:
            os.close(lifeline)
            if process is not None:
                process.abandon()
            raise
        finally:
            os.close(lifeline_end)

    @property
    def exit_status(self) -> int | None:
        """The launcher's exit code (see its docstring), or 128 + N if signal N ended the launcher
        itself."""
        return self._exited.result() if self._exited.done() else None

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Dragoman's ends of stdin, stdout and stderr; the taker closes them."""
        return self._process.stdin, self._process.stdout, self._process.stderr

    def describe_exit(self) -> str | None:
        status = self.exit_status
        return None if status is None else describe_status(status)

    @property
    def stdin(self) -> Descriptor:
        return self.pipes[0]

    def outputs(
        self, on_output: Callable[[bytes], None], on_log: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> tuple[ReadPipe, ReadPipe]:
        _, stdout, stderr = self.pipes
        return ReadPipe(stdout, on_output, on_end), ReadPipe(stderr, on_log, _nothing)

    async def stop(self, *, close_grace_s: float, kill_grace_s: float) -> None:
        """Wait `close_grace_s` for the end after stdin was closed, then have the launcher end
        everything. Completes within both graces and twice `MARGIN_S`, also under cancellation,
        which is raised at the end."""
        with anyio.CancelScope(shield=True):
            if not await self._exited_within(close_grace_s):
                self._close_lifeline()
                if not await self._exited_within(kill_grace_s + MARGIN_S):
                    logger.warning("launcher %d did not end its server in time; killing it", self._process.pid)
                    self._process.kill()
                    await self._exited_within(MARGIN_S)
        self._close_lifeline()
        if self._interrupted is not None:
            raise self._interrupted

    async def _exited_within(self, seconds: float) -> bool:
        deadline = self._loop.time() + seconds
        while not self._exited.done() and (left := deadline - self._loop.time()) > 0:
            try:
                await asyncio.wait([self._exited], timeout=left)
            except asyncio.CancelledError as exc:  # the scope above shields from anyio's cancellation, not asyncio's
                self._interrupted = exc
        return self._exited.done()

    def _reap(self) -> None:
        code = self._process.poll()
        if code is None:
            return
        if code < 0:  # the launcher was killed, and may have left something behind
            end_marked(self._mark)
        if self._group is not None:
            _ = self._loop.run_in_executor(None, end_group, self._group)
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._exited.set_result(code if code >= 0 else 128 - code)
        self._on_exit()

    def _close_lifeline(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


def start_process(command: StdioCommand, environment: Mapping[str, str]) -> StartServer:
    """Starts the command. `environment` is Dragoman's own; the server inherits a few names of it.
    An unknown command exits at once with status 127. Raises OSError (no such directory, no
    descriptor left)."""

    async def start(*, kill_grace_s: float, on_exit: Callable[[], None]) -> StartedServer:
        return await ServerProcess.start(command, environment=environment, kill_grace_s=kill_grace_s, on_exit=on_exit)

    return start


def _nothing() -> None:
    """The end of stderr is ignored."""


async def _launched(
    command: StdioCommand, environment: Mapping[str, str], mark: Mapping[str, str], lifeline: int, grace_s: float
) -> Spawned:
    """`environment` reaches the server alone: variables of the dynamic linker would run code in the
    launcher, which is not confined."""
    launcher = [*LAUNCHER, "--lifeline", str(lifeline), "--grace", str(grace_s), *command.confinement]
    for name, value in command.limits.items():
        launcher += ["--group" if name in NAMES else "--rlimit", f"{name}={value}"]
    variables = memory_file(environment_bytes(environment))
    try:
        return await spawned(
            [*launcher, "--environment", str(variables), "--", command.command, *command.args],
            environment=mark,
            cwd=command.cwd,
            handed=(lifeline, variables, *command.handed),
        )
    finally:
        os.close(variables)


def _inherited(environment: Mapping[str, str]) -> dict[str, str]:
    # A value beginning with "()" is a shell function exported by an old bash, which a child shell
    # would execute.
    return {
        name: value
        for name in INHERITED_NAMES
        if (value := environment.get(name)) is not None and not value.startswith("()")
    }
