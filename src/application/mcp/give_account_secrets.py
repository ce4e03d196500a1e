"""GiveAccountSecrets: store the secrets that the caller gives for an MCP server, for themself
only."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from application.audit.entries import audit_entry
from application.audit.ports import AuditLog
from application.mcp.account_connected import AccountConnected
from application.mcp.account_secrets import PersonSecretStore
from application.mcp.account_server import account_server
from application.mcp.ports import McpServerStore
from application.mcp.secret_destinations import destination_of, offer_of
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import Violation, conflict, invalid
from domain.identity.api_key import Principal
from domain.mcp.given_secrets import MAX_GIVEN_BYTES, GivenSecrets, account_owner, binding_of_secrets
from domain.mcp.server import McpServer, McpServerConfig
from domain.secrets.secret import violations_of_value


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveAccountSecretsCommand:
    """`server` is an id or a slug. `values` are secrets by name; `address` is what the caller was
    told that gets them, and `offer` the `ListedAccount.offer` of that, if they were told."""

    principal: Principal
    server: str
    values: Mapping[str, str] = field(repr=False)
    address: str | None = None
    offer: str | None = None


class GiveAccountSecrets:
    """Rules:
    - People give their own, with any role; keys have none.
    - Only secrets that the server names `person:NAME`, each a single line of at most 8 KiB. Those
      that are not given again stay. All must be there afterwards.
    - They are for the address or the program that the server has now, and nothing else gets them:
      after a change the person gives them again. What was changed since the person was told gets
      nothing, variables included.
    - The account is connected then (`AccountConnected`). Audited as `account.connected`, with the
      names.

    Raises: FORBIDDEN `person_required`, NOT_FOUND, CONFLICT `mcp_server_auth_mismatch`,
    `mcp_server_changed`, INVALID `account_secrets_invalid`.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        person_secrets: PersonSecretStore,
        accounts: AccountConnected,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._servers = servers
        self._secrets = person_secrets
        self._accounts = accounts
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids

    async def execute(self, command: GiveAccountSecretsCommand) -> McpServer:
        """The server, which acts for the caller."""
        server = await account_server(self._servers, command.principal, command.server)
        owner, config = account_owner(server), server.config
        assert owner is not None  # `account_server` requires a person
        if not config.person_secrets:
            raise conflict("mcp_server_auth_mismatch", f"The MCP server {config.slug!r} takes no secrets of persons.")
        if command.address not in (None, destination_of(config)) or command.offer not in (None, offer_of(server)):
            raise _changed(config)
        if not await self._secrets.save(owner, lambda former: self._given(config, former, command.values)):
            raise _changed(config)
        try:
            # The revision is in the key of connections: the former secret is used no more, and
            # those of others stay open.
            await self._accounts.continue_what_waits(server, had_account=False)
        finally:
            await self._audit(command, server)
        await self._accounts.list_tools(server)
        return server

    def _given(self, config: McpServerConfig, former: GivenSecrets | None, new: Mapping[str, str]) -> GivenSecrets:
        values = {**({} if former is None else former.of(config)), **new}
        if wrong := list(_wrong(config, values)):
            raise invalid("account_secrets_invalid", "The secrets are not valid.", *wrong)
        return GivenSecrets(
            binding=binding_of_secrets(config),
            revision=self._ids.new("rev"),
            given_at=self._clock.now(),
            values=values,
        )

    async def _audit(self, command: GiveAccountSecretsCommand, server: McpServer) -> None:
        await self._audit_log.record(
            audit_entry(
                command.principal,
                AuditAction.ACCOUNT_CONNECTED,
                server.id,
                ids=self._ids,
                at=self._clock.now(),
                server_id=server.id,
                details={"slug": server.config.slug, "secrets": [*sorted(command.values)]},
            )
        )


def _wrong(config: McpServerConfig, values: Mapping[str, str]) -> Iterator[Violation]:
    named = config.person_secrets
    for name, value in values.items():
        path = f"secrets.{name}"
        if name not in named:
            yield Violation(path=path, message=f"is not one of {', '.join(named)}")
            continue
        wrong = violations_of_value(path, value)
        yield from wrong
        if not wrong and len(value.encode("utf-8", "surrogatepass")) > MAX_GIVEN_BYTES:
            yield Violation(path=path, message=f"must not be larger than {MAX_GIVEN_BYTES} bytes")
        if "\r" in value or "\n" in value:
            yield Violation(path=path, message="must be a single line")
    for name in named:
        if name not in values:
            yield Violation(path=f"secrets.{name}", message="must be given")


def _changed(config: McpServerConfig) -> Exception:
    detail = f"The MCP server {config.slug!r} or your access was changed meanwhile. Open your accounts again."
    return conflict("mcp_server_changed", detail)
