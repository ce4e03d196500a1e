"""Jobs in killable child processes, forked by a process with the libraries loaded
(`forking_process.py`).

The process starts with the first job and ends after an idle time, because its libraries take
megabytes. A child is killed when its job is cancelled, for example by a deadline.
"""

import asyncio
import json
import logging
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from infrastructure.forking.wire import ANSWER, MAX_HEAD_BYTES, READY

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_CHUNK_BYTES = 256 * 1024


class ChildLostError(Exception):
    """The child ended without an answer: out of memory or time, or its libraries crashed."""


class ForkServerUnavailableError(Exception):
    """The process that forks children does not start."""


class ForkedChildren:
    """Children of one module's process, at most `max_concurrent` at a time; further jobs wait."""

    def __init__(self, module: str, *, max_concurrent: int, idle_timeout_s: float) -> None:
        self._module = module
        self._slots = asyncio.Semaphore(max_concurrent)
        self._idle_timeout_s = idle_timeout_s
        self._server: ForkServer | None = None
        self._starting = asyncio.Lock()
        self._in_use = 0
        self._idle: asyncio.TimerHandle | None = None

    async def run(self, job: Callable[[socket.socket], Awaitable[_T]]) -> _T:
        """The result of `job` on a connection to a new child.

        `job` is called a second time if the forking process ended, not only the child. Raises
        ChildLostError, ForkServerUnavailableError, and the exceptions of the job.
        """
        async with self._slots:
            self._began()
            try:
                return await self._run(job)
            finally:
                self._ended()

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        await self._discard_server()

    async def _run(self, job: Callable[[socket.socket], Awaitable[_T]]) -> _T:
        for _ in range(2):
            try:
                with await self._connected() as connection:
                    return await job(connection)
            except (EOFError, OSError) as error:
                if isinstance(error, TimeoutError):
                    raise
                if self._server is not None and self._server.is_alive:
                    break
                # The whole process ended with its children: the job did not cause it.
        raise ChildLostError

    async def _connected(self) -> socket.socket:
        """Our end of the socket of a new child."""
        async with self._starting:
            for _ in range(2):
                if self._server is not None and not self._server.is_alive:
                    await self._discard_server()
                try:
                    if self._server is None:
                        self._server = await ForkServer.started(self._module)
                    return self._server.new_child()
                except OSError:  # it does not start, or has just ended
                    await self._discard_server()
        logger.error("fork server does not start", extra={"child_module": self._module})
        raise ForkServerUnavailableError

    async def _discard_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    def _began(self) -> None:
        self._in_use += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _ended(self) -> None:
        self._in_use -= 1
        if self._in_use == 0:
            self._idle = asyncio.get_running_loop().call_later(self._idle_timeout_s, self._retire)

    def _retire(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.dismiss()


class ForkServer:
    """One forking process, and its control socket."""

    def __init__(self, process: Process, control: socket.socket) -> None:
        self._process = process
        self._control = control

    @classmethod
    async def started(cls, module: str) -> "ForkServer":
        """A new process that is ready. Raises OSError if it does not become ready."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *("-I", "-m", "dragoman.run_module", module),
                    str(theirs.fileno()),
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env={},
                    cwd="/",
                    start_new_session=True,  # Ctrl-C goes to the service, which ends this process in order
                )
            if await asyncio.get_running_loop().sock_recv(ours, 1) != READY:
                raise ConnectionResetError
        except BaseException:
            ours.close()
            raise
        return cls(process, ours)

    @property
    def is_alive(self) -> bool:
        """Checked on the socket, because the exit status may arrive later."""
        try:
            return self._process.returncode is None and self._control.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def new_child(self) -> socket.socket:
        """Our end of a new child's socket. Raises OSError when the process has ended."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"j"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        return ours

    def dismiss(self) -> None:
        """Let the process end by itself, with its children."""
        self._control.close()

    async def close(self) -> None:
        self._control.close()
        try:
            async with asyncio.timeout(2):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


async def received(connection: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes. Raises EOFError when there are fewer."""
    loop = asyncio.get_running_loop()
    buffer = bytearray()
    while len(buffer) < size:
        chunk = await loop.sock_recv(connection, min(_CHUNK_BYTES, size - len(buffer)))
        if not chunk:
            raise EOFError
        buffer += chunk
    return bytes(buffer)


async def received_head(connection: socket.socket) -> dict[str, object]:
    """The head of an answer. Raises EOFError, OSError."""
    (size,) = ANSWER.unpack(await received(connection, ANSWER.size))
    if size > MAX_HEAD_BYTES:
        raise EOFError
    head = json.loads(await received(connection, size))
    if not isinstance(head, dict):
        raise EOFError
    return head
