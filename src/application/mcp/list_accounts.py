"""ListAccounts: the MCP servers that the caller uses, used, or may use with their own account."""

from dataclasses import dataclass

from application.mcp.account_secrets import PersonSecretStore
from application.mcp.account_server import account_link
from application.mcp.authorization import Account, McpAuthorizer
from application.mcp.oauth_client import PublicAddress
from application.mcp.ports import McpServerStore
from application.mcp.secret_destinations import destination_of, offer_of
from application.mcp.sign_in_issuers import takes_sign_in_with
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.identity.api_key import Principal
from domain.ids import McpServerId, OrganizationId, UserId
from domain.mcp.auth import TokenExchangeAuth
from domain.mcp.given_secrets import AccountOwner
from domain.mcp.server import Credentials, McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAccount:
    """`account` is None until the person connects theirs, at `link`, and if it is not used any
    more. `is_stored` says whether tokens or secrets of the person are stored, also of such an
    account. `is_visible` is False for a server of a group that the person left: they see its slug
    and its id alone. `address` is what gets its secrets, and `offer` names that with all its
    settings, as it is now."""

    server: McpServer
    account: Account | None
    is_stored: bool
    link: str
    is_visible: bool = True

    @property
    def is_used(self) -> bool:
        """Whether the person may use the server with an account of theirs; False for one that
        became the organization's, and for one of a group that they left."""
        return self.is_visible and self.server.config.credentials is Credentials.PERSON

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
    - All servers with credentials of each person, by slug, connected or not, and those for which
      something of the person is stored from when they had such credentials.
    - Servers of groups that the person left, if they gave secrets for them. What a sign-in stored
      says nothing about groups: those servers are not listed.

    Raises: FORBIDDEN `person_required`.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        authorizer: McpAuthorizer,
        person_secrets: PersonSecretStore,
        address: PublicAddress,
    ) -> None:
        self._servers = servers
        self._authorizer = authorizer
        self._person_secrets = person_secrets
        self._address = address

    async def execute(self, principal: Principal) -> tuple[ListedAccount, ...]:
        person_id = principal.require_person()
        stored = await self._person_secrets.servers(principal.organization_id, person_id)
        servers, cursor, left = list[McpServer](), None, set(stored)
        while True:
            request = PageRequest(limit=MAX_PAGE_SIZE, cursor=cursor, teams=principal.visible_teams)
            page = await self._servers.page(principal.organization_id, request)
            servers += [
                each for each in page.items if each.config.credentials is Credentials.PERSON or each.id in stored
            ]
            left.difference_update(each.id for each in page.items)
            if (cursor := page.next_cursor) is None:
                break
        listed = [
            ListedAccount(
                server=server,
                account=await self._account(server.acting_for(person_id)),
                is_stored=server.id in stored,
                link=account_link(self._address, server),
            )
            for server in servers
        ]
        listed += await self._of_groups_left(principal.organization_id, person_id, left)
        return tuple(sorted(listed, key=lambda each: each.server.config.slug))

    async def _of_groups_left(
        self, organization_id: OrganizationId, person_id: UserId, hidden: set[McpServerId]
    ) -> list[ListedAccount]:
        given = [id for id in hidden if await self._person_secrets.has(AccountOwner(organization_id, id, person_id))]
        found = [await self._servers.get(organization_id, id) for id in given]
        return [
            ListedAccount(server=server, account=None, is_stored=True, link="", is_visible=False)
            for server in found
            if server is not None
        ]

    async def _account(self, server: McpServer) -> Account | None:
        return None if server.person_id is None else await self._authorizer.account(server)
