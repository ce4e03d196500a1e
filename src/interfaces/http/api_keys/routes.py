"""Routes of API keys."""

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.identity.create_api_key import CreateApiKey, CreateApiKeyCommand
from application.identity.queries import ListApiKeys
from application.identity.sign_in_links import SignInLinks
from application.revocation.revoke_api_key import RevokeApiKey, RevokeApiKeyCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from domain.ids import ApiKeyId
from domain.threads.message_json import timestamp
from interfaces.console_paths import SIGN_IN_PATH
from interfaces.http.api_keys.schemas import CreateApiKeyBody
from interfaces.http.api_keys.views import (
    ApiKeyPage,
    CreatedApiKeyView,
    RevokedApiKeyView,
    SignInLinkView,
    api_key_view,
    created_api_key_view,
    revoked_api_key_view,
)
from interfaces.http.auth import bearer_token
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import KeyPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="API keys", description="Keys of the organization.")


@post("/api-keys", summary="Create an API key", responses=documented(403, 413))
async def create_api_key(
    request: ApiRequest, data: JSONBody[CreateApiKeyBody], create_api_key: NamedDependency[CreateApiKey]
) -> CreatedApiKeyView:
    """Requires the role admin. The token is shown only in this response."""
    command = CreateApiKeyCommand(
        principal=request.principal,
        name=data.name,
        role=data.role,
        custom_role=data.custom_role,
        expires_at=data.expires_at,
        rate_limit=None if data.rate_limit is None else data.rate_limit.to_domain(),
        platform=data.platform,
    )
    return created_api_key_view(await create_api_key.execute(command))


@get("/api-keys", summary="List API keys", responses=documented(403))
async def list_api_keys(
    *,
    request: ApiRequest,
    list_api_keys: NamedDependency[ListApiKeys],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> ApiKeyPage:
    """Requires the role admin. Newest first, including revoked and expired keys."""
    return page_view(
        await list_api_keys.execute(principal=request.principal, page=PageRequest(limit=limit, cursor=cursor)),
        api_key_view,
    )


@delete("/api-keys/{key_id:str}", status_code=200, summary="Revoke an API key", responses=documented(403, 404, 409))
async def revoke_api_key(
    request: ApiRequest, key_id: KeyPath, revoke_api_key: NamedDependency[RevokeApiKey]
) -> RevokedApiKeyView:
    """Requires the role admin. The key stops working at once. Its unfinished runs and workflow runs
    are cancelled, and gateway sessions that it opened are revoked. A key cannot revoke itself;
    revoking a platform key requires one. Revoking a revoked key again ends what a failure left."""
    command = RevokeApiKeyCommand(principal=request.principal, key_id=ApiKeyId(key_id))
    return revoked_api_key_view(key_id, await revoke_api_key.execute(command))


@post("/sign-in-links", summary="Create a link that signs in to the console", responses=documented())
async def create_sign_in_link(request: ApiRequest, sign_in_links: NamedDependency[SignInLinks]) -> SignInLinkView:
    """The link signs a browser in with the key of this request, once, within fifteen minutes. Only
    the process that answered knows it: behind a load balancer another one shows the sign-in
    page."""
    new = sign_in_links.create(bearer_token(request.scope["headers"]))
    return {"path": f"{SIGN_IN_PATH}/{new.code}", "expires_at": timestamp(new.expires_at)}
