"""JMESPath whose work is bounded: an expression of some hundred characters can make terabytes of a short value.

What counts are steps, and the size of values that are made on the way, as JSON would have them: in memory their parts may be
one and the same.
"""

from collections.abc import Mapping
from typing import Any, cast

from jmespath import functions
from jmespath.visitor import Options, TreeInterpreter

from domain.json_value import JsonValue, size_within

MAX_WORK = 32 * 1024 * 1024
"""Characters of texts, and `_PER_ELEMENT` for each step and each element: a second or so."""
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
"""Kinds of node that make values; the others pass parts of them on."""


class TooMuchWork(Exception):
    """The bound is reached."""


def searched(parsed: Mapping[str, Any], value: JsonValue) -> JsonValue:
    """The value of an expression. Raises TooMuchWork, and what the library raises."""
    return cast(JsonValue, _Interpreter().visit(parsed, value))


class _Functions(functions.Functions):
    """The library's. One of them can make much more than it is given."""

    @functions.signature({"types": ["string"]}, {"types": ["array-string"]})
    def _func_join(self, sep: str, array: list[str]) -> str:
        if len(sep) * len(array) > MAX_WORK:
            raise TooMuchWork
        return sep.join(array)


class _Interpreter(TreeInterpreter):
    """Counts; for one evaluation."""

    def __init__(self) -> None:
        super().__init__(Options(custom_functions=_Functions()))
        self._left = MAX_WORK

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        """The value of a node."""
        value = super().visit(node, *args, **kwargs)
        made = node["type"] in _MAKING
        self._left -= size_within(value, self._left, per_element=_PER_ELEMENT) if made else _PER_ELEMENT
        if self._left < 0:
            raise TooMuchWork
        return value
