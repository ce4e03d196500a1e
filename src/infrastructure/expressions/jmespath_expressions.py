"""JMESPath by the reference implementation. Expressions are compiled once; those that would block
the parser are rejected.

Cheap expressions are evaluated in place, all others in a child process (`worker.py`).
"""

import asyncio
from typing import NotRequired, TypedDict, cast

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.parser import ParsedResult

from application.system.lru import LruCache
from application.workflows.ports import EXPRESSION_TOO_COSTLY, ExpressionFailed
from domain.json_value import JsonValue
from infrastructure.expressions.bounded_jmespath import (
    EvaluationError,
    Fault,
    TooMuchWork,
    evaluated_in_place,
    is_lookup,
)
from infrastructure.expressions.worker import ExpressionWorker
from infrastructure.forking.fork_server import ForkServerUnavailableError

MAX_LENGTH = 4_096
_MAX_NESTING = 64
_OPENING = "([{"
_CLOSING = ")]}"


class _Node(TypedDict):
    type: str
    children: "list[_Node | int | None]"
    value: NotRequired[object]


class JmesPathExpressions:
    """The `Expressions` port. Keeps the `cache_size` compiled expressions last used."""

    def __init__(self, *, worker: ExpressionWorker | None = None, cache_size: int = 1_024) -> None:
        self._worker = worker or ExpressionWorker()
        self._compiled: LruCache[str, ParsedResult] = LruCache(cache_size)

    def problem_with(self, expression: str) -> str | None:
        """Why the expression cannot be used, as a clause without a full stop, or None."""
        if not expression.strip():
            return "it is empty"
        if len(expression) > MAX_LENGTH:
            return f"it is longer than {MAX_LENGTH} characters"
        if _nesting(expression) > _MAX_NESTING:
            return "it is nested too deeply"
        try:
            return _wrong_call(self._parsed(expression))
        except JMESPathError as error:
            place = getattr(error, "lex_position", None)
            return f"its syntax is wrong at character {place + 1}" if isinstance(place, int) else "its syntax is wrong"
        except RecursionError:
            return "it is nested too deeply"

    async def evaluate(self, expression: str, value: JsonValue) -> JsonValue:
        """The value of the expression. Raises ExpressionFailed."""
        problem = self.problem_with(expression)
        if problem is not None:
            raise ExpressionFailed(f"The expression cannot be used: {problem}.")
        try:
            return await self._evaluated(expression, value)
        except EvaluationError as error:
            raise _failure(error.fault) from error
        except TimeoutError as error:
            raise ExpressionFailed(
                "The expression failed: evaluating it over this value takes too long.", code=EXPRESSION_TOO_COSTLY
            ) from error
        except ForkServerUnavailableError as error:
            raise ExpressionFailed("The expression failed: it cannot be evaluated at the moment.") from error

    async def close(self) -> None:
        await self._worker.close()

    async def _evaluated(self, expression: str, value: JsonValue) -> JsonValue:
        parsed = self._parsed(expression).parsed
        if not is_lookup(parsed):
            # A template may have thousands of expressions: let other tasks run between them.
            await asyncio.sleep(0)
        try:
            return evaluated_in_place(parsed, value)
        except TooMuchWork:
            return await self._worker.evaluate(expression, value)

    def _parsed(self, expression: str) -> ParsedResult:
        parsed = self._compiled.get(expression)
        if parsed is None:
            parsed = jmespath.compile(expression)
            self._compiled.put(expression, parsed)
        return parsed


def _failure(fault: Fault) -> ExpressionFailed:
    if fault is Fault.TOO_MUCH:
        said = "it produces too much from this value"
        return ExpressionFailed(f"The expression failed: {said}.", code=EXPRESSION_TOO_COSTLY)
    said = (
        "a function got a value of a type that it does not accept"
        if fault is Fault.WRONG_TYPE
        else "it cannot be evaluated over this value"
    )
    return ExpressionFailed(f"The expression failed: {said}.")


def _wrong_call(parsed: ParsedResult) -> str | None:
    """An unknown function, or a wrong number of arguments. The library reports these only during a
    call."""
    waiting: list[_Node] = [cast(_Node, parsed.parsed)]
    while waiting:
        node = waiting.pop()
        # Of a slice they are its numbers, which may be missing.
        waiting += [child for child in node["children"] if isinstance(child, dict)]
        if node["type"] != "function_expression":
            continue
        name, given = str(node["value"]), len(node["children"])
        known = Functions.FUNCTION_TABLE.get(name)
        if known is None:
            return f"there is no function {name[:64]!r}"
        signature = known["signature"]
        variadic = bool(signature) and bool(signature[-1].get("variadic"))
        if given < len(signature) or (given > len(signature) and not variadic):
            return f"the function {name!r} takes {len(signature)} argument{'s' if len(signature) != 1 else ''}"
    return None


def _nesting(expression: str) -> int:
    depth = deepest = 0
    for character in expression:
        if character in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif character in _CLOSING:
            depth -= 1
    return deepest
