"""code_execution as models see it; its interpreter takes memory, and is loaded by the first call."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from application.tools.ports import NativeToolContext, NativeToolOutput
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool

_MAX_CODE_CHARACTERS = 100_000

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
        "The files of this conversation are in the current folder: open('data.csv') reads one, os.listdir() names them."
        " A file that the code writes there becomes a file of the conversation. There are no other files and no network,"
        " and variables are not kept between calls. End with an expression, or print, to get a result."
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
    repeatable=True,  # what it writes takes the place of what the same call wrote before
)


class Interpreter(Protocol):
    """What runs the code."""

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """The output. Raises NativeToolError."""
        ...

    async def close(self) -> None:
        """End its processes."""
        ...


class LazyCodeExecution:
    """`open_interpreter` loads it, at the first call."""

    def __init__(self, open_interpreter: Callable[[], Interpreter]) -> None:
        self._open_interpreter = open_interpreter
        self._interpreter: Interpreter | None = None

    @property
    def tool(self) -> Tool:
        """Its description for the model."""
        return CODE_EXECUTION

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """As the interpreter does."""
        interpreter = self._interpreter or self._keep(await asyncio.to_thread(self._open_interpreter))
        return await interpreter.run(arguments, context)

    async def close(self) -> None:
        """End what was opened. It can be called again afterwards."""
        if self._interpreter is not None:
            await self._interpreter.close()

    def _keep(self, interpreter: Interpreter) -> Interpreter:
        """Whoever was first stays; what another call loaded meanwhile has started nothing yet."""
        self._interpreter = self._interpreter or interpreter
        return self._interpreter
