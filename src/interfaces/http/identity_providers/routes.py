"""Routes of identity providers."""

from litestar import Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.identity.check_identity_provider import CheckIdentityProvider, CheckIdentityProviderCommand
from application.identity.create_identity_provider import CreateIdentityProvider, CreateIdentityProviderCommand
from application.identity.delete_identity_provider import DeleteIdentityProvider, DeleteIdentityProviderCommand
from application.identity.queries import GetIdentityProvider, ListIdentityProviders
from application.identity.update_identity_provider import UpdateIdentityProvider, UpdateIdentityProviderCommand
from application.provisioning.create_scim_token import CreateScimToken, CreateScimTokenCommand
from application.provisioning.revoke_scim_token import RevokeScimToken, RevokeScimTokenCommand
from interfaces.http.identity_providers.schemas import IdentityProviderBody, UpdateIdentityProviderBody
from interfaces.http.identity_providers.views import (
    IdentityProviderList,
    IdentityProviderTestView,
    IdentityProviderView,
    ScimTokenView,
    identity_provider_test_view,
    identity_provider_view,
)
from interfaces.http.paths import IdentityProviderPath
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Identity providers", description="Where people of the organization sign in.")


@post("/identity-providers", summary="Add an identity provider", responses=documented(403, 409, 413))
async def create_identity_provider(
    request: ApiRequest,
    data: JSONBody[IdentityProviderBody],
    create_identity_provider: NamedDependency[CreateIdentityProvider],
) -> Response[IdentityProviderView]:
    """Requires the role admin; `installation` requires a platform key. People sign in to the
    console with it, and send its tokens to the API. Without a rule no person is admitted."""
    provider = await create_identity_provider.execute(
        CreateIdentityProviderCommand(principal=request.principal, **data.values())
    )
    return Response(identity_provider_view(provider), status_code=201, headers=etag(provider.version))


@get("/identity-providers", summary="List identity providers", responses=documented(403))
async def list_identity_providers(
    request: ApiRequest, list_identity_providers: NamedDependency[ListIdentityProviders]
) -> IdentityProviderList:
    """Requires the role admin. By name."""
    found = await list_identity_providers.execute(request.principal)
    return {"data": [identity_provider_view(provider) for provider in found]}


@get("/identity-providers/{identity_provider:str}", summary="Read an identity provider", responses=documented(403, 404))
async def get_identity_provider(
    request: ApiRequest,
    identity_provider: IdentityProviderPath,
    get_identity_provider: NamedDependency[GetIdentityProvider],
) -> Response[IdentityProviderView]:
    """Requires the role admin. All fields except the secret."""
    found = await get_identity_provider.execute(request.principal, identity_provider)
    return Response(identity_provider_view(found), headers=etag(found.version))


@patch(
    "/identity-providers/{identity_provider:str}",
    summary="Change an identity provider",
    responses=documented(403, 404, 409, 412, 413),
)
async def update_identity_provider(
    request: ApiRequest,
    identity_provider: IdentityProviderPath,
    data: JSONBody[UpdateIdentityProviderBody],
    update_identity_provider: NamedDependency[UpdateIdentityProvider],
    if_match: IfMatch = None,
) -> Response[IdentityProviderView]:
    """Requires the role admin. Rules decide with the next token and the next sign-in."""
    changed = await update_identity_provider.execute(
        UpdateIdentityProviderCommand(
            principal=request.principal,
            provider=identity_provider,
            changes=data.changes(),
            expected_version=expected_version(if_match),
        )
    )
    return Response(identity_provider_view(changed), headers=etag(changed.version))


@delete(
    "/identity-providers/{identity_provider:str}", summary="Delete an identity provider", responses=documented(403, 404)
)
async def delete_identity_provider(
    request: ApiRequest,
    identity_provider: IdentityProviderPath,
    delete_identity_provider: NamedDependency[DeleteIdentityProvider],
) -> None:
    """Requires the role admin. People who signed in with it are refused at once."""
    await delete_identity_provider.execute(
        DeleteIdentityProviderCommand(principal=request.principal, provider=identity_provider)
    )


@post(
    "/identity-providers/{identity_provider:str}/test",
    summary="Test an identity provider",
    status_code=200,
    responses=documented(403, 404),
)
async def test_identity_provider(
    request: ApiRequest,
    identity_provider: IdentityProviderPath,
    check_identity_provider: NamedDependency[CheckIdentityProvider],
) -> IdentityProviderTestView:
    """Requires the role admin. Reads its metadata and keys. For one that does not work the response
    has `ok: false`."""
    command = CheckIdentityProviderCommand(principal=request.principal, provider=identity_provider)
    return identity_provider_test_view(await check_identity_provider.execute(command))


@post(
    "/identity-providers/{identity_provider:str}/scim-token",
    summary="Create the SCIM token of an identity provider",
    responses=documented(403, 404),
)
async def create_scim_token(
    request: ApiRequest,
    identity_provider: IdentityProviderPath,
    create_scim_token: NamedDependency[CreateScimToken],
) -> ScimTokenView:
    """Requires the role admin. With it the company's directory adds, changes and removes people and
    groups at `/scim/v2` (SCIM 2.0). The token before becomes invalid at once."""
    command = CreateScimTokenCommand(principal=request.principal, provider=identity_provider)
    return {"token": await create_scim_token.execute(command), "path": "/scim/v2"}


@delete(
    "/identity-providers/{identity_provider:str}/scim-token",
    summary="Revoke the SCIM token of an identity provider",
    responses=documented(403, 404),
)
async def revoke_scim_token(
    request: ApiRequest,
    identity_provider: IdentityProviderPath,
    revoke_scim_token: NamedDependency[RevokeScimToken],
) -> None:
    """Requires the role admin. People and groups stay."""
    await revoke_scim_token.execute(RevokeScimTokenCommand(principal=request.principal, provider=identity_provider))
