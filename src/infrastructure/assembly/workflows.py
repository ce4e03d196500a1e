"""Builds the adapters of workflows."""

from importlib.metadata import version
from typing import Protocol

from application.system.lazy import LazyClosable
from application.workflows.http_request import HttpAnswer, HttpCall, HttpCaller
from application.workflows.http_step import HttpStep
from application.workflows.local_steps import LocalSteps
from application.workflows.mcp_step import McpStep
from application.workflows.node_execution import NodeExecutor
from application.workflows.ports import Expressions
from domain.json_value import JsonValue
from domain.workflows.graph import NodeKind
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import Proxies


class ClosableHttpCaller(HttpCaller, Protocol):
    async def close(self) -> None: ...


class ClosableExpressions(Expressions, Protocol):
    """Expressions with processes to end."""

    async def close(self) -> None:
        """End the evaluating processes."""
        ...


class LazyExpressions(LazyClosable[ClosableExpressions]):
    """`Expressions` whose library is imported on first use."""

    def problem_with(self, expression: str) -> str | None:
        return self.get().problem_with(expression)

    async def evaluate(self, expression: str, value: JsonValue) -> JsonValue:
        return await self.get().evaluate(expression, value)


class LazyHttpCaller(LazyClosable[ClosableHttpCaller]):
    """`HttpCaller` whose client is imported and created at the first request."""

    async def send(self, call: HttpCall) -> HttpAnswer:
        return await (await self.warm()).send(call)


def expressions() -> LazyExpressions:
    def load() -> ClosableExpressions:
        from infrastructure.expressions.jmespath_expressions import JmesPathExpressions

        return JmesPathExpressions()

    return LazyExpressions(load)


def http_caller(egress: EgressPolicy, proxies: Proxies) -> LazyHttpCaller:
    def load() -> ClosableHttpCaller:
        from infrastructure.http.client import HttpClients
        from infrastructure.http.workflow_requests import GuardedHttpCaller

        user_agent = f"dragoman/{version('dragoman')}"
        return GuardedHttpCaller(egress=egress, user_agent=user_agent, http=HttpClients(proxies))

    return LazyHttpCaller(load)


def executors(local: LocalSteps, http: HttpStep, mcp: McpStep) -> dict[NodeKind, NodeExecutor]:
    """Executors by kind of node; agent nodes have their own."""
    kinds = (NodeKind.ENTRYPOINT, NodeKind.TRANSFORM, NodeKind.CONDITION, NodeKind.HUMAN_INPUT)
    return {**dict.fromkeys(kinds, local), NodeKind.HTTP_REQUEST: http, NodeKind.MCP_SERVER: mcp}
