"""Builds what workflows stand on."""

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
from infrastructure.http.egress import EgressPolicy


class ClosableHttpCaller(HttpCaller, Protocol):
    """A caller with connections to close."""

    async def close(self) -> None:
        """Close every connection."""
        ...


class ClosableExpressions(Expressions, Protocol):
    """Expressions with processes to end."""

    async def close(self) -> None:
        """End the processes that evaluate."""
        ...


class ExpressionsWhenNeeded:
    """The `Expressions` port; the library is imported with the first expression, since most services have none."""

    def __init__(self) -> None:
        self._loaded: ClosableExpressions | None = None

    def problem_with(self, expression: str) -> str | None:
        """Why it cannot be used."""
        return self._expressions().problem_with(expression)

    async def evaluate(self, expression: str, value: JsonValue) -> JsonValue:
        """Its value."""
        return await self._expressions().evaluate(expression, value)

    async def close(self) -> None:
        """End the processes that evaluate."""
        if self._loaded is not None:
            await self._loaded.close()

    def _expressions(self) -> ClosableExpressions:
        from infrastructure.expressions.jmespath_expressions import JmesPathExpressions

        if self._loaded is None:
            self._loaded = JmesPathExpressions()
        return self._loaded


def expressions() -> ExpressionsWhenNeeded:
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
            from infrastructure.http.workflow_requests import GuardedHttpCaller

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
