"""JMESPath with bounded work. Without bounds, a short expression can produce terabytes from a short
value, or run for minutes on a long one.

The bound counts steps, intermediate values with their size as JSON (in memory their parts may be
shared), and the arguments of functions.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, cast

import jmespath
from jmespath import functions
from jmespath.exceptions import JMESPathError, JMESPathTypeError
from jmespath.visitor import Options, TreeInterpreter

from domain.json_value import JsonValue, size_within

MAX_WORK = 32 * 1024 * 1024
"""Characters of texts, and `_PER_ELEMENT` for each step and element: about a second."""
MAX_IN_PLACE = 64 * 1024
"""The work allowed on the event loop: some milliseconds."""
_PER_ELEMENT = 16
_MAKING = frozenset(
    {
        "filter_projection",
        "flatten",
        "function_expression",
        "multi_select_dict",
        "multi_select_list",
        "projection",
        "slice",
        "value_projection",
    }
)
"""Kinds of nodes that create values; the others return parts of them."""
_LOOKUPS = frozenset({"current", "field", "identity", "index", "index_expression", "literal", "pipe", "subexpression"})
"""Kinds of nodes with work that does not depend on the value."""


class Fault(StrEnum):
    """Why an expression has no value."""

    TOO_MUCH = "too_much"
    WRONG_TYPE = "wrong_type"
    FAILED = "failed"


class EvaluationError(Exception):
    """An expression has no value. Messages of the library are left out, because they contain
    values."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


class TooMuchWork(Exception):
    """The bound is exceeded."""


def evaluated(parsed: Mapping[str, Any], value: JsonValue) -> JsonValue:
    """The value of an expression, for a process that may be busy. Raises EvaluationError."""
    return _evaluated(_Interpreter(MAX_WORK, looks_inside=False), parsed, value)


def evaluated_in_place(parsed: Mapping[str, Any], value: JsonValue) -> JsonValue:
    """The value of an expression, on the event loop. Raises TooMuchWork if it is expensive, and
    EvaluationError."""
    if not is_lookup(parsed) and size_within(value, MAX_IN_PLACE, per_element=_PER_ELEMENT) > MAX_IN_PLACE:
        raise TooMuchWork
    try:
        return _evaluated(_Interpreter(MAX_IN_PLACE, looks_inside=True), parsed, value)
    except EvaluationError as error:
        if error.fault is Fault.TOO_MUCH:
            raise TooMuchWork from error
        raise


def is_lookup(parsed: Mapping[str, Any]) -> bool:
    """Whether an expression only follows a path."""
    return parsed["type"] in _LOOKUPS and all(
        is_lookup(child) for child in parsed["children"] if isinstance(child, dict)
    )


def compiled(expression: str) -> Mapping[str, Any]:
    """The syntax tree of an expression that was checked before."""
    return cast(Mapping[str, Any], jmespath.compile(expression).parsed)


def _evaluated(interpreter: "_Interpreter", parsed: Mapping[str, Any], value: JsonValue) -> JsonValue:
    try:
        return cast(JsonValue, interpreter.visit(parsed, value))
    except TooMuchWork as error:
        raise EvaluationError(Fault.TOO_MUCH) from error
    except JMESPathTypeError as error:
        raise EvaluationError(Fault.WRONG_TYPE) from error
    except (JMESPathError, RecursionError, TypeError, ValueError, ArithmeticError) as error:
        raise EvaluationError(Fault.FAILED) from error


class _Functions(functions.Functions):
    """The library's functions with counted arguments. `join` can produce much more than its
    arguments."""

    def __init__(self, interpreter: "_Interpreter") -> None:
        super().__init__()
        self._interpreter = interpreter

    def call_function(self, function_name: str, resolved_args: Iterable[Any]) -> Any:
        given = list(resolved_args)
        for argument in given:
            self._interpreter.take(argument)
        return super().call_function(function_name, given)

    @functions.signature({"types": ["string"]}, {"types": ["array-string"]})
    def _func_join(self, sep: str, array: list[str]) -> str:
        if len(sep) * len(array) > MAX_WORK:
            raise TooMuchWork
        return sep.join(array)


class _Interpreter(TreeInterpreter):
    """Counts the work of one evaluation. With `looks_inside` all nested values of arguments are
    counted, otherwise their elements."""

    def __init__(self, max_work: int, *, looks_inside: bool) -> None:
        super().__init__(Options(custom_functions=_Functions(self)))
        self._left = max_work
        self._looks_inside = looks_inside

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        value = super().visit(node, *args, **kwargs)
        made = node["type"] in _MAKING
        self._spend(size_within(value, self._left, per_element=_PER_ELEMENT) if made else _PER_ELEMENT)
        return value

    def visit_comparator(self, node: Any, value: Any) -> Any:
        self.take(value)
        return super().visit_comparator(node, value)

    def take(self, argument: Any) -> None:
        """Count an argument."""
        if self._looks_inside and not callable(argument):
            self._spend(size_within(argument, self._left, per_element=_PER_ELEMENT))
        elif isinstance(argument, list | dict | str):
            self._spend(len(argument))

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise TooMuchWork
