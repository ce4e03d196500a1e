"""Routes of model providers."""

from litestar import Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.model_providers.check_model_provider import CheckModelProvider, CheckModelProviderCommand
from application.model_providers.create_model_provider import CreateModelProvider, CreateModelProviderCommand
from application.model_providers.delete_model_provider import DeleteModelProvider, DeleteModelProviderCommand
from application.model_providers.list_models import ListModels
from application.model_providers.queries import GetModelProvider, ListModelProviders
from application.model_providers.update_model_provider import UpdateModelProvider, UpdateModelProviderCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from interfaces.http.model_providers.schemas import ModelProviderBody, TestModelProviderBody, UpdateModelProviderBody
from interfaces.http.model_providers.views import (
    ModelNamesView,
    ModelProviderPage,
    ModelProviderView,
    ProviderTestView,
    model_provider_view,
    provider_test_view,
)
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import ProviderPath
from interfaces.http.preconditions import IfMatch, etag, expected_version
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.secrets.references import secret_value

TAG = Tag(name="Model providers", description="Where models are, and their keys.")


@post("/model-providers", summary="Add a model provider", responses=documented(403, 409, 413))
async def create_model_provider(
    request: ApiRequest, data: JSONBody[ModelProviderBody], create_model_provider: NamedDependency[CreateModelProvider]
) -> Response[ModelProviderView]:
    """Requires the role admin. Models are then named `NAME:model`. The key cannot be read back."""
    provider = await create_model_provider.execute(
        CreateModelProviderCommand(
            principal=request.principal,
            name=data.name,
            kind=data.kind,
            base_url=data.base_url,
            wire=data.wire,
            echo_reasoning=data.echo_reasoning,
            api_key=None if data.api_key is None else secret_value(data.api_key),
            cloud=None if data.cloud is None else data.cloud.to_domain(),
            deployments=tuple(deployment.to_domain() for deployment in data.deployments),
        )
    )
    return Response(model_provider_view(provider), status_code=201, headers=etag(provider.version))


@get("/model-providers", summary="List model providers", responses=documented())
async def list_model_providers(
    *,
    request: ApiRequest,
    list_model_providers: NamedDependency[ListModelProviders],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> ModelProviderPage:
    """Providers of the organization, newest first, without those from the service's environment."""
    return page_view(
        await list_model_providers.execute(principal=request.principal, page=PageRequest(limit=limit, cursor=cursor)),
        model_provider_view,
    )


@get("/model-providers/{provider:str}", summary="Read a model provider", responses=documented(404))
async def get_model_provider(
    request: ApiRequest, provider: ProviderPath, get_model_provider: NamedDependency[GetModelProvider]
) -> Response[ModelProviderView]:
    """All fields except the key."""
    found = await get_model_provider.execute(principal=request.principal, name=provider)
    return Response(model_provider_view(found), headers=etag(found.version))


@patch(
    "/model-providers/{provider:str}",
    summary="Change a model provider",
    responses=documented(403, 404, 412, 413),
)
async def update_model_provider(
    request: ApiRequest,
    provider: ProviderPath,
    data: JSONBody[UpdateModelProviderBody],
    update_model_provider: NamedDependency[UpdateModelProvider],
    if_match: IfMatch = None,
) -> Response[ModelProviderView]:
    """Requires the role admin. The next model call uses the change."""
    changed = await update_model_provider.execute(
        UpdateModelProviderCommand(
            principal=request.principal,
            name=provider,
            changes=data.changes(),
            expected_version=expected_version(if_match),
        )
    )
    return Response(model_provider_view(changed), headers=etag(changed.version))


@delete("/model-providers/{provider:str}", summary="Delete a model provider", responses=documented(403, 404))
async def delete_model_provider(
    request: ApiRequest, provider: ProviderPath, delete_model_provider: NamedDependency[DeleteModelProvider]
) -> None:
    """Requires the role admin. Deleted at once, even if agents name it: their next model call
    uses the fallbacks, or fails."""
    await delete_model_provider.execute(DeleteModelProviderCommand(principal=request.principal, name=provider))


@post(
    "/model-providers/{provider:str}/test",
    summary="Test a model provider",
    status_code=200,
    responses=documented(403, 404, 413),
)
async def test_model_provider(
    request: ApiRequest,
    provider: ProviderPath,
    data: JSONBody[TestModelProviderBody],
    check_model_provider: NamedDependency[CheckModelProvider],
) -> ProviderTestView:
    """Requires the role admin. Sends three short requests to a model, which cost tokens. For a
    provider that does not work the response has `ok: false`, within bounded time."""
    command = CheckModelProviderCommand(principal=request.principal, name=provider, model=data.model)
    return provider_test_view(await check_model_provider.execute(command))


@get(
    "/model-providers/{provider:str}/models",
    summary="List the models of a provider",
    responses=documented(404, 503),
)
async def list_models_of_provider(
    request: ApiRequest, provider: ProviderPath, list_models: NamedDependency[ListModels]
) -> ModelNamesView:
    """As the provider lists them, at most 10 minutes old."""
    return {"data": [*await list_models.execute(request.principal, provider)]}
