"""code_execution: the model's Python, in a sandboxed interpreter in a process of its own (pydantic-monty).

The sandbox has no file, network or process access to begin with; time, memory, recursion and output are capped, and the
process is killed when the call is cancelled or overdue. Below: the interpreter's pool of worker processes.
"""

import asyncio
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

from application.tools.ports import NativeToolContext, NativeToolError, NativeToolOutput
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool
from infrastructure.native_tools.sandbox_values import ValueTooLarge, as_json

_MAX_CODE_CHARACTERS = 100_000
_MAX_TRACEBACK = 4_000
# The interpreter raises these itself, and the code cannot catch them.
_TIME_IS_UP = ("feed time limit exceeded", "sleep limit exceeded")
_MEMORY_IS_UP = ("memory limit exceeded", "the worker exceeded its memory limit")

CODE_EXECUTION = Tool(
    name=ToolType.CODE_EXECUTION.value,
    type=ToolType.CODE_EXECUTION,
    description=(
        "Run Python code in a fresh sandbox and get what it printed and the value of its last expression. Use it for"
        " calculations, text processing and transforming data.\n"
        "It is a subset of Python 3: functions, closures, lambdas, comprehensions, f-strings, try/except, with, match,"
        " async/await and plain classes and dataclasses work. Not supported: class inheritance, generators (yield),"
        " the del statement, input(), third-party packages.\n"
        "Modules that can be imported: asyncio, base64, binascii, bisect, collections, copy, csv, dataclasses, datetime,"
        " decimal, functools, hashlib, itertools, json, math, pathlib, random, re, time, tomllib, typing, unicodedata.\n"
        "There is no network and there are no files. Nothing is kept between calls: put all data the code needs into"
        " the code itself. End with an expression, or print, to get a result."
    ),
    parameters={
        "type": "object",
        "properties": {
            "code": {
                "type": "string",
                "description": "The Python source. Its last line may be an expression, whose value is returned.",
                "maxLength": _MAX_CODE_CHARACTERS,
            }
        },
        "required": ["code"],
        "additionalProperties": False,
    },
    repeatable=True,  # it cannot change anything outside of itself
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLimits:
    """Caps of one execution. `max_output_bytes` counts what is printed, and the result as JSON."""

    timeout_s: float = 10.0
    max_memory_bytes: int = 64 * 1024 * 1024
    max_output_bytes: int = 256 * 1024
    max_recursion: int = 500


class CodeExecutionTool:
    """Runs each call in a worker process that serves no second one, at most `max_processes` at a time."""

    def __init__(self, *, limits: CodeLimits | None = None, max_processes: int = 4) -> None:
        self._limits = limits or CodeLimits()
        self._pool = AsyncMonty(min_processes=0, max_processes=max_processes, max_checkouts_per_worker=1)
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._is_open = False

    @property
    def tool(self) -> Tool:
        """Its description for the model."""
        return CODE_EXECUTION

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """`{"result": …, "stdout": …}`. Raises NativeToolError `code_error` (with the code's own traceback),
        `code_timeout`, `code_memory_exceeded`, `code_output_too_large`, `code_busy` or `code_crashed`."""
        code = arguments["code"]
        if not isinstance(code, str):
            raise TypeError("arguments are validated before a tool runs")
        deadline = asyncio.get_running_loop().time() + context.timeout_s
        await self._ensure_open()
        async with AsyncExitStack() as held:
            session = self._pool.checkout(limits=self._sandbox_limits(context.timeout_s))
            try:
                async with asyncio.timeout_at(deadline):
                    await held.enter_async_context(session)
            except TimeoutError as error:
                raise NativeToolError("code_busy", "The code was not run: all sandboxes were in use.") from error
            except MontyError as error:
                raise _crashed() from error
            printed = _Printed(self._limits.max_output_bytes)
            left = deadline - asyncio.get_running_loop().time()
            try:
                # A little longer than the sandbox's own limit, which gives the better answer when it can.
                async with asyncio.timeout(min(left, self._limits.timeout_s + 0.5)) as timeout:
                    printed.stop_when_full(timeout)
                    value = await session.feed_run(code, print_callback=printed)
            except TimeoutError as error:
                raise self._too_much_output() if printed.full else self._overdue(context.timeout_s) from error
            except MontyError as error:
                raise self._failure(error, context.timeout_s) from error
        return NativeToolOutput(value=self._output(value, printed))

    async def close(self) -> None:
        """End the worker processes."""
        self._is_open = False
        await self._open.aclose()

    async def _ensure_open(self) -> None:
        async with self._opening:
            if not self._is_open:
                await self._open.enter_async_context(self._pool)
                self._is_open = True

    def _sandbox_limits(self, timeout_s: float) -> ResourceLimits:
        allowed = min(timeout_s, self._limits.timeout_s)
        return ResourceLimits(
            max_feed_duration_secs=allowed,
            max_total_sleep_secs=allowed,  # sleeping does not count as execution
            max_memory=self._limits.max_memory_bytes,
            max_recursion_depth=self._limits.max_recursion,
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
    """Collects what the code prints; when there is too much, the code is stopped instead of listened to."""

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
            self._loop.call_soon_threadsafe(self._stop)  # the pool may call from a thread of its own

    def _stop(self) -> None:
        if self._timeout is not None:
            with suppress(RuntimeError):  # the code has just ended
                self._timeout.reschedule(self._loop.time())


def _crashed() -> NativeToolError:
    return NativeToolError("code_crashed", "The sandbox stopped unexpectedly; the code has no result.")


def _shortened(traceback: str) -> str:
    """Head and tail of a long traceback: where it began, and what was raised."""
    if len(traceback) <= _MAX_TRACEBACK:
        return traceback
    half = _MAX_TRACEBACK // 2
    return f"{traceback[:half]}\n…\n{traceback[-half:]}"
