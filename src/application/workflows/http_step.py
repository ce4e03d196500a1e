"""An HTTP request as a step."""

from collections.abc import Iterable

from application.secrets.ports import SecretStore
from application.workflows.http_request import HttpRequestFailed, HttpRequests, credential_names, default_values
from application.workflows.node_execution import NodeContext, NodeFailed, Succeeded
from application.workflows.ports import Expressions
from domain.errors import ServiceError
from domain.ids import OrganizationId
from domain.json_value import JsonValue
from domain.secrets.secret import SECRET_UNAVAILABLE, SecretRef
from domain.workflows.execution import NodeRun
from domain.workflows.graph import BoundValue, HttpRequestConfig
from domain.workflows.plan import PlannedNode
from domain.workflows.templates import INPUTS


class BoundInputs:
    """Values of bound inputs and of secrets in headers, read when the node executes."""

    def __init__(self, *, secrets: SecretStore, expressions: Expressions) -> None:
        self._secrets = secrets
        self._expressions = expressions

    async def values(
        self, node: PlannedNode, bound: tuple[tuple[str, BoundValue], ...], context: NodeContext
    ) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
        """Values by input, and the secrets among them. Raises NodeFailed `secret_missing`,
        `secret_unavailable`, `expression_failed`."""
        values: dict[str, JsonValue] = {}
        hidden: list[str] = []
        for name, value in bound:
            if isinstance(value, SecretRef):
                secret = await self._secret(context.organization_id, value.name)
                hidden.append(secret)
                values[name] = secret
            else:
                values[name] = await context.filled(node, value, self._expressions)
        return values, tuple(hidden)

    async def credentials(self, config: HttpRequestConfig, organization_id: OrganizationId) -> dict[str, str]:
        """Values of secrets by name. Raises NodeFailed `secret_missing`, `secret_unavailable`."""
        return {name: await self._secret(organization_id, name) for name in credential_names(config)}

    async def require(self, names: Iterable[str], organization_id: OrganizationId) -> None:
        """Raises NodeFailed `secret_missing` if one of the secrets does not exist,
        `secret_unavailable` if it cannot be read."""
        for name in names:
            await self._secret(organization_id, name)

    async def _secret(self, organization_id: OrganizationId, name: str) -> str:
        try:
            value = await self._secrets.value(organization_id, name)
        except ServiceError as error:
            if error.code != SECRET_UNAVAILABLE:
                raise
            raise NodeFailed(error.code, error.detail, retryable=True) from error  # nothing was sent
        if value is None:
            raise NodeFailed("secret_missing", f"There is no secret {name!r}.")
        return value


class HttpStep:
    """Rules: those of `HttpRequests`; secrets are read when the node executes."""

    def __init__(self, *, requests: HttpRequests, inputs: BoundInputs) -> None:
        self._requests = requests
        self._inputs = inputs

    async def execute(self, node: PlannedNode, run: NodeRun, context: NodeContext) -> Succeeded:
        config = node.config
        if not isinstance(config, HttpRequestConfig):
            raise ValueError(f"{node.kind} is no HTTP request")
        bound, hidden = await self._inputs.values(node, config.bound, context)
        inputs: dict[str, JsonValue] = default_values(config) | bound
        try:
            output = await self._requests.send(
                config,
                {**context.outputs(node), INPUTS: inputs},
                credentials=await self._inputs.credentials(config, context.organization_id),
                hidden=hidden,
                timeout_s=node.settings.timeout_s,
            )
        except HttpRequestFailed as failure:
            raise NodeFailed(failure.code, failure.detail, retryable=failure.retryable) from failure
        return Succeeded(output=output)
