"""Builds what workflows stand on."""

from functools import cached_property

from application.workflows.ports import Expressions
from domain.json_value import JsonValue


class ExpressionsWhenNeeded:
    """The `Expressions` port; the library is imported with the first expression, since most services have none."""

    @cached_property
    def _expressions(self) -> Expressions:
        from infrastructure.expressions import JmesPathExpressions

        return JmesPathExpressions()

    def problem_with(self, expression: str) -> str | None:
        """Why it cannot be used."""
        return self._expressions.problem_with(expression)

    def evaluate(self, expression: str, value: JsonValue) -> JsonValue:
        """Its value."""
        return self._expressions.evaluate(expression, value)


def expressions() -> Expressions:
    """JMESPath."""
    return ExpressionsWhenNeeded()
