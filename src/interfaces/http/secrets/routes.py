"""Routes of named secrets."""

from litestar import Response, delete, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Tag
from litestar.params import JSONBody

from application.secrets.delete_secret import DeleteSecret, DeleteSecretCommand
from application.secrets.queries import ListSecrets
from application.secrets.rotate_secret_key import RotateSecretKey
from application.secrets.set_secret import SetSecret, SetSecretCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import SecretPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.secrets.schemas import SetSecretBody
from interfaces.http.secrets.views import RotationView, SecretPage, SecretView, secret_view

TAG = Tag(name="Secrets", description="Named values that other settings refer to. They are never shown.")

_CREATED = 201
_REPLACED = 200


@post(
    "/secrets",
    summary="Set a secret",
    responses={
        200: ResponseSpec(
            data_container=SecretView, description="The secret has a new value.", generate_examples=False
        ),
        **documented(403, 413),
    },
)
async def set_secret(
    request: ApiRequest, data: JSONBody[SetSecretBody], set_secret: NamedDependency[SetSecret]
) -> Response[SecretView]:
    """Requires the role admin. Stores a new secret (201), or a new value of an existing one
    (200), which servers use from their next connection. The value cannot be read back."""
    command = SetSecretCommand(principal=request.principal, name=data.name, value=data.value)
    result = await set_secret.execute(command)
    return Response(secret_view(result.secret), status_code=_CREATED if result.created else _REPLACED)


@get("/secrets", summary="List secrets", responses=documented(403))
async def list_secrets(
    *,
    request: ApiRequest,
    list_secrets: NamedDependency[ListSecrets],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> SecretPage:
    """Requires the role admin. Names and dates, newest first."""
    return page_view(
        await list_secrets.execute(principal=request.principal, page=PageRequest(limit=limit, cursor=cursor)),
        secret_view,
    )


@delete("/secrets/{secret:str}", summary="Delete a secret", responses=documented(403, 404, 409))
async def delete_secret(request: ApiRequest, secret: SecretPath, delete_secret: NamedDependency[DeleteSecret]) -> None:
    """Requires the role admin. Rejected while the secret is referenced."""
    await delete_secret.execute(DeleteSecretCommand(principal=request.principal, name=secret))


@post("/secrets/rotate", summary="Rotate the secret key", status_code=200, responses=documented(403))
async def rotate_secret_key(request: ApiRequest, rotate_secret_key: NamedDependency[RotateSecretKey]) -> RotationView:
    """Requires a platform key. One step of re-encrypting everything; repeat it until nothing
    remains."""
    done = await rotate_secret_key.execute(request.principal)
    return {"reencrypted": done.reencrypted, "remaining": done.remaining}
