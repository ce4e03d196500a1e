"""Builds what workflows stand on."""

from functools import cached_property
from importlib.metadata import version
from typing import Protocol

from application.workflows.http_request import HttpAnswer, HttpCall, HttpCaller
from application.workflows.http_step import HttpStep
from application.workflows.local_steps import LocalSteps
from application.workflows.mcp_step import McpStep
from application.workflows.node_execution import NodeExecutor
from application.workflows.ports import Expressions
from domain.json_value import JsonValue
from domain.workflows.graph import NodeKind
from infrastructure.egress import EgressPolicy


class ClosableHttpCaller(HttpCaller, Protocol):
    """A caller with connections to close."""

    async def close(self) -> None:
        """Close every connection."""
        ...


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


class HttpCallerWhenNeeded:
    """The `HttpCaller` port; the client is imported and made with the first request."""

    def __init__(self, egress: EgressPolicy) -> None:
        self._egress = egress
        self._caller: ClosableHttpCaller | None = None

    async def send(self, call: HttpCall) -> HttpAnswer:
        """The answer, whatever its status."""
        if self._caller is None:
            from infrastructure.workflow_http import GuardedHttpCaller

            self._caller = GuardedHttpCaller(egress=self._egress, user_agent=f"dragoman/{version('dragoman')}")
        return await self._caller.send(call)

    async def close(self) -> None:
        """Close every connection."""
        if self._caller is not None:
            await self._caller.close()


def http_caller(egress: EgressPolicy) -> HttpCallerWhenNeeded:
    """Requests of workflows."""
    return HttpCallerWhenNeeded(egress)


def executors(local: LocalSteps, http: HttpStep, mcp: McpStep) -> dict[NodeKind, NodeExecutor]:
    """Who executes nodes of which kind; agents have their own."""
    kinds = (NodeKind.ENTRYPOINT, NodeKind.TRANSFORM, NodeKind.CONDITION, NodeKind.HUMAN_INPUT)
    return {**dict.fromkeys(kinds, local), NodeKind.HTTP_REQUEST: http, NodeKind.MCP_SERVER: mcp}
