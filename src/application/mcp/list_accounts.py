"""ListAccounts: the MCP servers that the caller uses, or may use, with their own account."""

from dataclasses import dataclass

from application.mcp.account_server import account_link
from application.mcp.authorization import Account, McpAuthorizer
from application.mcp.oauth_client import PublicAddress
from application.mcp.ports import McpServerStore
from application.mcp.secret_destinations import destination_of, offer_of
from application.mcp.sign_in_issuers import takes_sign_in_with
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.identity.api_key import Principal
from domain.mcp.auth import TokenExchangeAuth
from domain.mcp.server import Credentials, McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAccount:
    """`account` is None until the person connects theirs, at `link`. `address` is what gets its
    secrets, and `offer` names that with all its settings, as it is now."""

    server: McpServer
    account: Account | None
    link: str

    @property
    def sign_in_with(self) -> str | None:
        """The issuer that the server needs a sign-in with, if the person signed in with another
        one."""
        auth, account = self.server.config.auth, self.account
        if not isinstance(auth, TokenExchangeAuth) or account is None or account.issuer is None:
            return None
        return None if takes_sign_in_with(auth, account.issuer) else auth.issuer

    @property
    def is_connected(self) -> bool:
        """Whether runs of the person can use the server."""
        return self.account is not None and self.sign_in_with is None

    @property
    def address(self) -> str:
        return destination_of(self.server.config)

    @property
    def offer(self) -> str:
        return offer_of(self.server)


class ListAccounts:
    """Rules:
    - People see their own accounts, with any role; keys have none.
    - All servers with credentials of each person, by slug, connected or not.

    Raises: FORBIDDEN `person_required`.
    """

    def __init__(self, *, servers: McpServerStore, authorizer: McpAuthorizer, address: PublicAddress) -> None:
        self._servers = servers
        self._authorizer = authorizer
        self._address = address

    async def execute(self, principal: Principal) -> tuple[ListedAccount, ...]:
        person_id = principal.require_person()
        servers, cursor = list[McpServer](), None
        while True:
            request = PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor, teams=principal.visible_teams)
            page = await self._servers.page(principal.organization_id, request)
            servers += [each for each in page.items if each.config.credentials is Credentials.PERSON]
            if (cursor := page.next_cursor) is None:
                break
        return tuple(
            [
                ListedAccount(
                    server=server,
                    account=await self._authorizer.account(server.acting_for(person_id)),
                    link=account_link(self._address, server),
                )
                for server in sorted(servers, key=lambda each: each.config.slug)
            ]
        )
