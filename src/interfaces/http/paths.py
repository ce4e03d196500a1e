"""Path parameters as the OpenAPI document describes them."""

from typing import Annotated

from litestar.openapi.spec import OpenAPIType
from litestar.params import PathParameter

RunPath = Annotated[str, PathParameter(description="The id of a run.")]
ThreadPath = Annotated[str, PathParameter(description="The id of a thread.")]
AgentPath = Annotated[str, PathParameter(description="The id or the name of an agent.")]
ServerPath = Annotated[str, PathParameter(description="The id or the slug of an MCP server.")]
GatewaySessionPath = Annotated[str, PathParameter(description="The id of a gateway session.")]
KeyPath = Annotated[str, PathParameter(description="The id of an API key.")]
GroupPath = Annotated[str, PathParameter(description="The id or the name of a group.")]
RolePath = Annotated[str, PathParameter(description="The name of a custom role.")]
UserPath = Annotated[str, PathParameter(description="The id of a user.")]
SessionPath = Annotated[str, PathParameter(description="The id of a session.")]
IdentityProviderPath = Annotated[str, PathParameter(description="The id or the name of an identity provider.")]
OrganizationPath = Annotated[str, PathParameter(description="The id of an organization.")]
ProviderPath = Annotated[str, PathParameter(description="The name of a model provider.")]
ApprovalPath = Annotated[str, PathParameter(description="The id of an approval.")]
SchedulePath = Annotated[str, PathParameter(description="The id or the name of a schedule.")]
WebhookDeliveryPath = Annotated[str, PathParameter(description="The id of a webhook delivery.")]
WorkflowRunPath = Annotated[str, PathParameter(description="The id of a workflow run.")]
WorkflowPath = Annotated[str, PathParameter(description="The id or the name of a workflow.")]
SecretPath = Annotated[str, PathParameter(description="The name of a secret.")]
SourcePath = Annotated[str, PathParameter(description="The id of a source.")]
OptionalThreadPath = Annotated[
    str | None,
    PathParameter(description="The id of a thread.", schema_extra={"type": OpenAPIType.STRING, "one_of": None}),
]
"""For handlers that also have a path without it; where it is in the path, it is given."""
ToolPath = Annotated[str, PathParameter(description="The server's own name of a tool.")]
ToolNamePath = Annotated[str, PathParameter(description="The name of a tool as models see it.")]
