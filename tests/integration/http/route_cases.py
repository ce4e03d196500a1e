"""Routes with requests that work, for the tests of who may do what."""

from dataclasses import dataclass, field

from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A route with a request that works: placeholders of the path name things in the service,
    `foreign` says whether there is something of ORG in it that another organization must not find,
    `platform` whether it takes a platform key."""

    method: str
    path: str
    role: Role
    status: int = 200
    body: dict[str, object] | None = None
    foreign: bool = field(default=False)
    platform: bool = field(default=False)
    query: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


IDP_BODY: dict[str, object] = {"name": "new", "issuer": "https://login.invalid", "client_id": "dragoman"}
ONE_IDP = "/v1/identity-providers/{identity_provider}"
OF_PEOPLE = (
    Case(method="POST", path="/v1/identity-providers", role=Role.ADMIN, status=201, body=IDP_BODY),
    Case(method="GET", path="/v1/identity-providers", role=Role.ADMIN),
    Case(method="GET", path=ONE_IDP, role=Role.ADMIN, foreign=True),
    Case(method="PATCH", path=ONE_IDP, role=Role.ADMIN, body={"audiences": ["api"]}, foreign=True),
    Case(method="DELETE", path=ONE_IDP, role=Role.ADMIN, status=204, foreign=True),
    Case(method="POST", path=f"{ONE_IDP}/test", role=Role.ADMIN, foreign=True),
    Case(method="POST", path=f"{ONE_IDP}/scim-token", role=Role.ADMIN, status=201, foreign=True),
    # It has none, which only those who may revoke it are told.
    Case(method="DELETE", path=f"{ONE_IDP}/scim-token", role=Role.ADMIN, status=404, foreign=True),
    Case(method="GET", path="/v1/groups", role=Role.ADMIN),
    Case(method="POST", path="/v1/groups", role=Role.ADMIN, status=201, body={"name": "new"}),
    Case(method="GET", path="/v1/groups/{group}", role=Role.ADMIN, foreign=True),
    Case(method="PATCH", path="/v1/groups/{group}", role=Role.ADMIN, body={"name": "newer"}, foreign=True),
    Case(method="DELETE", path="/v1/groups/{group}", role=Role.ADMIN, status=204, foreign=True),
    Case(method="GET", path="/v1/roles", role=Role.VIEWER),
    Case(method="POST", path="/v1/roles", role=Role.ADMIN, status=201, body={"name": "new", "permissions": []}),
    Case(method="GET", path="/v1/roles/{role}", role=Role.VIEWER, foreign=True),
    Case(method="PATCH", path="/v1/roles/{role}", role=Role.ADMIN, body={"permissions": []}, foreign=True),
    Case(method="DELETE", path="/v1/roles/{role}", role=Role.ADMIN, status=204, foreign=True),
    # Keys have no accounts.
    Case(method="GET", path="/v1/me/accounts", role=Role.VIEWER, status=403),
    Case(method="PATCH", path="/v1/me/accounts/{server}", role=Role.VIEWER, body={"secrets": {}}, status=403),
    Case(method="DELETE", path="/v1/me/accounts/{server}", role=Role.VIEWER, status=403),
    Case(method="GET", path="/v1/whoami", role=Role.VIEWER),
    Case(method="GET", path="/v1/users", role=Role.ADMIN),
    Case(method="GET", path="/v1/users/{user_id}", role=Role.ADMIN, foreign=True),
    Case(method="PATCH", path="/v1/users/{user_id}", role=Role.ADMIN, body={"role": "viewer"}, foreign=True),
    Case(method="DELETE", path="/v1/users/{user_id}", role=Role.ADMIN, foreign=True),
)
OF_RUNS = (
    Case(method="GET", path="/v1/runs", role=Role.VIEWER),
    Case(method="GET", path="/v1/runs/count", role=Role.VIEWER),
    Case(method="GET", path="/v1/runs/export", role=Role.VIEWER),
)
# The tool is approved.
OF_TOOLS = (
    Case(method="GET", path="/v1/mcp-servers/{server}/tools", role=Role.VIEWER, foreign=True),
    Case(method="POST", path="/v1/mcp-servers/{server}/tools/{tool}/approve", role=Role.ADMIN, foreign=True),
    Case(method="POST", path="/v1/mcp-servers/{server}/tools/{tool}/reject", role=Role.ADMIN, status=409, foreign=True),
)
# No registry is configured, which only those who may read registries are told.
IN_A_REGISTRY = "/v1/mcp-registries/{registry}/servers"
OF_REGISTRIES = (
    Case(method="GET", path="/v1/mcp-servers/{server}/newer-version", role=Role.ADMIN, foreign=True),
    Case(method="GET", path="/v1/mcp-registries", role=Role.ADMIN),
    Case(method="GET", path=IN_A_REGISTRY, role=Role.ADMIN, status=404),
    Case(method="GET", path=f"{IN_A_REGISTRY}/{{namespace}}/{{name}}", role=Role.ADMIN, status=404),
    Case(method="POST", path=f"{IN_A_REGISTRY}/{{namespace}}/{{name}}", role=Role.ADMIN, status=404, body={}),
)

OF_SERVERS_AND_WEBHOOKS = (
    Case(method="POST", path="/v1/mcp-servers/{server}/uninstall", role=Role.ADMIN, status=202, foreign=True),
    Case(method="POST", path="/v1/mcp-servers/import", role=Role.ADMIN, body={"mcpServers": {}}),
    Case(method="POST", path="/v1/mcp-servers/{server}/refresh", role=Role.OPERATOR, foreign=True),
    Case(method="POST", path="/v1/mcp-servers/{server}/connect", role=Role.OPERATOR, foreign=True),
    Case(method="POST", path="/v1/mcp-servers/{server}/disconnect", role=Role.OPERATOR, foreign=True),
    Case(method="GET", path="/v1/mcp-servers/{server}/status", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/mcp-servers/{server}/logs", role=Role.OPERATOR, foreign=True),
    Case(method="POST", path="/v1/organization/webhook-key", role=Role.ADMIN, status=201),
    Case(method="GET", path="/v1/organization/webhook-deliveries", role=Role.ADMIN),
    # The agent does not have the server, which only those who may ask it are told.
    Case(
        method="GET",
        path="/v1/mcp-servers/{server}/contents",
        role=Role.RUNNER,
        query="?agent={agent}",
        status=403,
        foreign=True,
    ),
    Case(
        method="POST",
        path="/v1/mcp-servers/{server}/resources/read",
        role=Role.RUNNER,
        body={"agent": "{agent}", "uri": "file:///notes"},
        status=404,
        foreign=True,
    ),
    Case(
        method="POST",
        path="/v1/mcp-servers/{server}/prompts/get",
        role=Role.RUNNER,
        body={"agent": "{agent}", "name": "greet"},
        status=404,
        foreign=True,
    ),
    Case(method="GET", path="/v1/runs/{run_id}/webhook-deliveries", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/webhook-deliveries", role=Role.VIEWER),
    Case(method="GET", path="/v1/webhook-receivers", role=Role.VIEWER),
)
