"""The first agent, made step by step on the use cases that the API has: `dragoman init` in the
browser."""

from dataclasses import dataclass, field

from application.agents.create_agent import CreateAgent, CreateAgentCommand
from application.mcp.install_mcp_server import InstallMcpServer, InstallMcpServerCommand
from application.mcp.ports import ServerStatus
from application.mcp.queries import GetMcpServerStatus
from application.mcp.register_mcp_server import RegisterMcpServer, RegisterMcpServerCommand
from application.model_providers.create_model_provider import CreateModelProvider, CreateModelProviderCommand
from domain.agents.agent import Agent
from domain.errors import ServiceError, Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.model_providers.provider import ProviderKind
from interfaces.http.agents.schemas import CreateAgentBody
from interfaces.http.bodies import decoded_body
from interfaces.http.mcp_servers.schemas import McpServerBody
from interfaces.starter_offers import KEYED_PROVIDERS, ServerOffer, starter_agent


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAgentWanted:
    """`model` is one of the offers. `api_key` is empty where the service has one."""

    name: str
    model: str
    server: ServerOffer | None
    api_key: str = field(default="", repr=False)


class FirstAgent:
    """Rules:
    - Admins only.
    - A server that is registered already is used as it is. A new one is installed in the
      background.
    - A given key makes the model's provider, unless the organization has it.
    - Sent again after a refusal, what was made before is not made twice.
    """

    def __init__(
        self,
        *,
        register_mcp_server: RegisterMcpServer,
        install_mcp_server: InstallMcpServer,
        get_mcp_server_status: GetMcpServerStatus,
        create_model_provider: CreateModelProvider,
        create_agent: CreateAgent,
    ) -> None:
        self._register_server = register_mcp_server
        self._install_server = install_mcp_server
        self._server_status = get_mcp_server_status
        self._create_provider = create_model_provider
        self._create_agent = create_agent

    async def create(self, principal: Principal, wanted: FirstAgentWanted) -> Agent:
        """Raises FORBIDDEN, INVALID and CONFLICT of the use cases."""
        principal.require(Permission.AGENTS_MANAGE)
        if wanted.server is not None:
            await self._register(principal, wanted.server)
        await self._give_key(principal, wanted)
        body = decoded_body(CreateAgentBody, starter_agent(wanted.name, wanted.model, wanted.server))
        return await self._create_agent.execute(
            CreateAgentCommand(principal=principal, settings=body.to_settings(), canary_tokens=body.to_canaries())
        )

    async def status(self, principal: Principal, server: ServerOffer) -> ServerStatus:
        """Whether the server is being installed, or why it is not."""
        return await self._server_status.execute(principal=principal, server=server.name)

    async def _register(self, principal: Principal, offer: ServerOffer) -> None:
        config = decoded_body(McpServerBody, offer.body()).to_config()
        try:
            server = await self._register_server.execute(RegisterMcpServerCommand(principal=principal, config=config))
        except ServiceError as error:
            if error.code != "mcp_server_slug_taken":
                raise
            return
        await self._install_server.execute(InstallMcpServerCommand(principal=principal, server=server.id))

    async def _give_key(self, principal: Principal, wanted: FirstAgentWanted) -> None:
        provider = wanted.model.partition(":")[0]
        if not wanted.api_key or provider not in KEYED_PROVIDERS:
            return
        command = CreateModelProviderCommand(
            principal=principal, name=provider, kind=ProviderKind(provider), api_key=wanted.api_key
        )
        try:
            await self._create_provider.execute(command)
        except ServiceError as error:
            if error.code != "model_provider_exists":
                raise
            fault = Violation(path="api_key", message=f"{provider} has a key already: leave this empty to use it.")
            raise invalid("model_provider_exists", error.detail, fault) from error
