"""code_execution: runs the model's Python in a sandboxed interpreter in a separate process
(pydantic-monty).

The sandbox has no access to files, network or processes. Time, memory, recursion and output are
bounded, and the process is killed when the call is cancelled or overdue. Its files are the sources
of the thread; files that it writes become sources. Below: the pool of worker processes, and the
sources.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from pydantic_monty import (
    AsyncMonty,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySyntaxError,
    ResourceLimits,
)

from application.sources.ports import SourceStore
from application.sources.source_content import parts_of
from application.sources.store_source import StoreSource, StoreSourceCommand
from application.system.ports import Clock
from application.tools.ports import NativeToolContext, NativeToolError, NativeToolOutput
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, is_storage_away
from domain.ids import AuditEventId, SourceId, derived_id
from domain.json_value import JsonObject, JsonValue
from domain.sources.source import Source
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from infrastructure.http.shared_bound import SharedBound
from infrastructure.native_tools.confined_interpreter import confined_interpreter
from infrastructure.native_tools.lazy_code_execution import CODE_EXECUTION
from infrastructure.native_tools.sandbox_files import FOLDER, SandboxFiles
from infrastructure.native_tools.sandbox_values import ValueTooLarge, as_json

_MAX_TRACEBACK = 4_000
# The interpreter raises these itself, and the code cannot catch them.
_TIME_IS_UP = ("feed time limit exceeded", "sleep limit exceeded")
_MEMORY_IS_UP = ("memory limit exceeded", "the worker exceeded its memory limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLimits:
    """Limits of one execution.

    - `max_output_bytes` bounds printed text, and the result as JSON.
    - `max_read_bytes` bounds what is read of sources; `max_written_bytes` bounds the files left
      behind.
    - `max_host_calls` bounds the number of file operations.
    """

    timeout_s: float = 10.0
    max_memory_bytes: int = 64 * 1024 * 1024
    max_output_bytes: int = 256 * 1024
    max_recursion: int = 500
    max_read_bytes: int = 50 * 1024 * 1024
    max_written_bytes: int = 10 * 1024 * 1024
    max_files: int = 20
    max_host_calls: int = 100_000


class CodeExecutionTool:
    """Runs each call in a new worker process, at most `max_processes` at a time and half of them
    for one organization, confined where this machine can."""

    def __init__(
        self,
        *,
        sources: SourceStore,
        store_source: StoreSource,
        clock: Clock,
        limits: CodeLimits | None = None,
        max_processes: int = 8,
    ) -> None:
        self._sources = sources
        self._store_source = store_source
        self._clock = clock
        self._limits = limits or CodeLimits()
        self._max_processes = max_processes
        self._places = SharedBound(max_processes)
        self._pool: AsyncMonty | None = None
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()

    @property
    def tool(self) -> Tool:
        return CODE_EXECUTION

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """`{"result": …, "stdout": …, "files"?: [{source_id, file, size}]}`. Code that fails leaves
        no files.

        Raises NativeToolError: `code_error` (with the code's traceback), `code_timeout`,
        `code_memory_exceeded`, `code_output_too_large`, `code_busy`, `code_crashed`,
        `code_files_not_kept`.
        """
        code = arguments["code"]
        if not isinstance(code, str):
            raise TypeError("arguments are validated before a tool runs")
        pool = await self._opened()
        deadline = asyncio.get_running_loop().time() + context.timeout_s
        files = await self._files_of(context)
        place = self._places.of(context.organization_id)
        async with AsyncExitStack() as held:
            session = pool.checkout(limits=self._sandbox_limits(context.timeout_s))
            try:
                async with asyncio.timeout_at(deadline):
                    await place.acquire()
                    held.callback(place.release)
                    await held.enter_async_context(session)
            except TimeoutError as error:
                raise NativeToolError("code_busy", "The code was not run: all sandboxes were in use.") from error
            except MontyError as error:
                raise _crashed() from error
            printed = _Printed(self._limits.max_output_bytes)
            left = deadline - asyncio.get_running_loop().time()
            try:
                # A little longer than the sandbox's own limit, which gives a better message.
                async with asyncio.timeout(min(left, self._limits.timeout_s + 0.5)) as timeout:
                    printed.stop_when_full(timeout)
                    value = await session.feed_run(code, print_callback=printed, os=files, cwd=str(FOLDER))
            except TimeoutError as error:
                raise self._too_much_output() if printed.full else self._overdue(context.timeout_s) from error
            except MontyError as error:
                raise self._failure(error, context.timeout_s) from error
        output = self._output(value, printed)
        if files.written:
            output["files"] = await self._keep(files.written, context)
        return NativeToolOutput(value=output)

    async def close(self) -> None:
        self._pool = None
        await self._open.aclose()

    async def _files_of(self, context: NativeToolContext) -> SandboxFiles:
        async def read(source: Source) -> bytes:
            return b"".join([part async for part in parts_of(self._sources, source)])

        return SandboxFiles(
            await self._sources.of_thread(context.organization_id, context.thread_id),
            read,
            max_read_bytes=self._limits.max_read_bytes,
            max_written_bytes=self._limits.max_written_bytes,
            max_files=self._limits.max_files,
        )

    async def _keep(self, written: dict[str, bytes], context: NativeToolContext) -> list[JsonValue]:
        """Store the written files as sources. Their ids derive from the call, so a repeated call
        creates no duplicates. Nothing is stored if any file contains a canary token."""
        if await asyncio.to_thread(_holds_canary, written, context):
            raise NativeToolError("code_files_not_kept", "The code ran, but its files must not be stored.")
        kept: list[JsonValue] = []
        for name, content in written.items():
            command = StoreSourceCommand(
                source_id=SourceId(derived_id("src", context.tool_call_id, name)),
                organization_id=context.organization_id,
                thread_id=context.thread_id,
                run_id=context.run_id,
                name=name,
                content=_once(content),
                audit=self._audit,
            )
            try:
                source = await self._store_source.execute(command)
            except ServiceError as error:
                if is_storage_away(error):
                    raise
                text = f"The code ran, but {name!r} could not be stored: {error.detail}"
                raise NativeToolError("code_files_not_kept", text) from error
            kept.append({"source_id": source.id, "file": source.name, "size": source.size})
        return kept

    def _audit(self, source: Source) -> AuditEvent:
        return AuditEvent(
            id=AuditEventId(derived_id("aud", source.id, source.digest)),
            organization_id=source.organization_id,
            action=AuditAction.SOURCE_ADDED,
            actor="system",
            resource=source.id,
            at=self._clock.now(),
            run_id=source.run_id,
            tool=ToolType.CODE_EXECUTION.value,
            details={"thread_id": source.thread_id, "name": source.name, "size": source.size, "sha256": source.digest},
        )

    async def _opened(self) -> AsyncMonty:
        async with self._opening:
            if self._pool is None:
                path = await asyncio.to_thread(self._open.enter_context, confined_interpreter())
                pool = AsyncMonty(
                    binary_path=path, min_processes=0, max_processes=self._max_processes, max_checkouts_per_worker=1
                )
                self._pool = await self._open.enter_async_context(pool)
            return self._pool

    def _sandbox_limits(self, timeout_s: float) -> ResourceLimits:
        allowed = min(timeout_s, self._limits.timeout_s)
        return ResourceLimits(
            max_feed_duration_secs=allowed,
            max_total_sleep_secs=allowed,  # sleeping is not counted as execution
            max_memory=self._limits.max_memory_bytes,
            max_recursion_depth=self._limits.max_recursion,
            max_suspensions=self._limits.max_host_calls,
        )

    def _output(self, value: object, printed: "_Printed") -> JsonObject:
        try:
            result = as_json(value, max_bytes=self._limits.max_output_bytes)
        except ValueTooLarge as error:
            raise self._too_much_output() from error
        return {"result": result, "stdout": printed.text}

    def _failure(self, error: MontyError, timeout_s: float) -> NativeToolError:
        if isinstance(error, MontyCrashedError):
            return self._overdue(timeout_s) if error.timed_out else _crashed()
        inner = error.exception()
        if isinstance(inner, TimeoutError) and str(inner).startswith(_TIME_IS_UP):
            return self._overdue(timeout_s)
        if isinstance(inner, MemoryError) and str(inner).startswith(_MEMORY_IS_UP):
            megabytes = self._limits.max_memory_bytes // (1024 * 1024)
            return NativeToolError("code_memory_exceeded", f"The code needed more than {megabytes} MiB of memory.")
        if isinstance(error, MontyRuntimeError | MontySyntaxError):
            return NativeToolError("code_error", _shortened(error.display()))
        return NativeToolError("code_error", "The value of the last expression cannot be returned; return plain data.")

    def _overdue(self, timeout_s: float) -> NativeToolError:
        allowed = min(timeout_s, self._limits.timeout_s)
        return NativeToolError("code_timeout", f"The code did not finish within {allowed:g} seconds and was stopped.")

    def _too_much_output(self) -> NativeToolError:
        kilobytes = self._limits.max_output_bytes // 1024
        return NativeToolError(
            "code_output_too_large", f"The code printed or returned more than {kilobytes} KiB; return less."
        )


class _Printed:
    """Collects the printed text, and stops the code when there is too much of it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._parts: list[str] = []
        self._timeout: asyncio.Timeout | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def full(self) -> bool:
        return self._size > self._max_bytes

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def stop_when_full(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout

    def __call__(self, stream: str, text: str) -> None:
        known = self._size
        self._size += len(text.encode(errors="replace"))
        if self._size <= self._max_bytes:
            self._parts.append(text)
        elif known <= self._max_bytes:
            self._loop.call_soon_threadsafe(self._stop)  # the pool may call from another thread

    def _stop(self) -> None:
        if self._timeout is not None:
            with suppress(RuntimeError):  # the code has just ended
                self._timeout.reschedule(self._loop.time())


def _holds_canary(written: dict[str, bytes], context: NativeToolContext) -> bool:
    holds = context.holds_canary
    if holds is None:
        return False
    return any(holds(name) or holds(content.decode(errors="replace")) for name, content in written.items())


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _crashed() -> NativeToolError:
    return NativeToolError("code_crashed", "The sandbox stopped unexpectedly; the code has no result.")


def _shortened(traceback: str) -> str:
    """The beginning and the end of a long traceback."""
    if len(traceback) <= _MAX_TRACEBACK:
        return traceback
    half = _MAX_TRACEBACK // 2
    return f"{traceback[:half]}\n…\n{traceback[-half:]}"
