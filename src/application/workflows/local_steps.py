"""Steps without I/O: entrypoint, transform, condition, human input."""

from datetime import timedelta

from application.system.ports import Clock
from application.workflows.node_execution import AwaitsAnswer, NodeContext, NodeFailed, Succeeded
from application.workflows.ports import ExpressionFailed, Expressions
from domain.json_value import JsonValue
from domain.workflows.execution import NodeRun
from domain.workflows.graph import ConditionConfig, EntrypointConfig, HumanInputConfig, TransformConfig
from domain.workflows.plan import PlannedNode


class LocalSteps:
    """Rules:
    - A condition takes the first case that is true by JMESPath's rules.
    - A node that waits for a person occupies no worker.
    """

    def __init__(self, *, expressions: Expressions, clock: Clock) -> None:
        self._expressions = expressions
        self._clock = clock

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Succeeded | AwaitsAnswer:
        """Raises NodeFailed `expression_failed`, `expression_too_costly`."""
        match node.config:
            case EntrypointConfig():
                return Succeeded(output=context.run_input)
            case TransformConfig(expression=expression, input=template):
                given = await context.given(node, template, self._expressions)
                return Succeeded(output=await self._evaluated(expression, given))
            case ConditionConfig() as condition:
                given = await context.given(node, condition.input, self._expressions)
                return Succeeded(output=given, handle=await self._chosen(condition, given))
            case HumanInputConfig(prompt=prompt, schema=schema):
                said = await context.filled(node, prompt, self._expressions)
                timeout_s = node.settings.timeout_s
                due_at = None if timeout_s is None else self._clock.now() + timedelta(seconds=timeout_s)
                return AwaitsAnswer(asked={"prompt": said, "schema": schema}, due_at=due_at)
            case _:
                raise ValueError(f"{node.kind} is no local step")

    async def _chosen(self, condition: ConditionConfig, given: JsonValue) -> str:
        for case in condition.cases:
            if _holds(await self._evaluated(case.expression, given)):
                return case.handle
        return condition.otherwise

    async def _evaluated(self, expression: str, value: JsonValue) -> JsonValue:
        try:
            return await self._expressions.evaluate(expression, value)
        except ExpressionFailed as error:
            raise NodeFailed(error.code, str(error)) from error


def _holds(value: JsonValue) -> bool:
    """JMESPath, "Or expressions": false values are null, false, empty strings, lists and objects.
    Numbers are true."""
    return value is not None and value is not False and value not in ("", [], {})
