"""The description of code_execution for models. The interpreter takes memory and is loaded by the
first call."""

from typing import Protocol

from application.system.lazy import LazyClosable
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
    repeatable=True,  # its files replace those of an earlier attempt of the same call
)


class Interpreter(Protocol):
    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """The output. Raises NativeToolError."""

    async def close(self) -> None:
        """End its processes."""


class LazyCodeExecution(LazyClosable[Interpreter]):
    """The tool. Its interpreter is loaded at the first call."""

    @property
    def tool(self) -> Tool:
        return CODE_EXECUTION

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        return await (await self.warm()).run(arguments, context)
