"""API keys: the list, creating one whose token is shown once, and revoking."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.plugins.htmx import HTMXHeaders

from application.identity.create_api_key import CreateApiKey, CreateApiKeyCommand, CreatedApiKey
from application.identity.queries import ListApiKeys
from application.revocation.revoke_api_key import RevokeApiKey, RevokeApiKeyCommand
from application.roles.queries import ListCustomRoles
from application.system.pages import PageRequest
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId
from domain.json_value import JsonObject
from interfaces.console.field_faults import NO_FAULTS, FieldFaults
from interfaces.console.form_values import FormValues
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.http.api_keys.schemas import CreateApiKeyBody
from interfaces.http.api_keys.views import revoked_api_key_view
from interfaces.http.bodies import decoded_body
from interfaces.http.roles.views import role_fields

PAGE = 50
CHANGED = "keys-changed"
"""Event that reloads the list."""
NEW_KEY = FormValues({"role": Role.VIEWER.value})
_FIELDS = {"name": "name", "role": "role", "custom_role": "role", "expires_at": "expires_at"}
"""Fields of the form by those of the body."""


class KeyPages:
    def __init__(self, *, list_api_keys: ListApiKeys, list_custom_roles: ListCustomRoles, clock: Clock) -> None:
        self._list = list_api_keys
        self._roles = list_custom_roles
        self._clock = clock

    async def listed(self, principal: Principal, cursor: str | None = None) -> dict[str, object]:
        """Keys, newest first. Raises FORBIDDEN."""
        page = await self._list.execute(principal=principal, page=PageRequest(limit=PAGE, cursor=cursor))
        return {
            "keys": page.items,
            "next_cursor": page.next_cursor,
            "now": self._clock.now(),
            "own": principal,
            "revoked": None,
        }

    async def form(
        self,
        principal: Principal,
        form: FormValues = NEW_KEY,
        *,
        faults: FieldFaults = NO_FAULTS,
        created: CreatedApiKey | None = None,
    ) -> dict[str, object]:
        names = [*Role, *(role.name for role in await self._roles.execute(principal))]
        return {"form": form, "faults": faults, "created": created, "roles": names}


@get("/keys")
async def show_keys(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    key_pages: NamedDependency[KeyPages],
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    """All keys, including revoked and expired ones."""
    listed = await key_pages.listed(request.principal, cursor)
    return pages.show(request, "keys.html", {**listed, **await key_pages.form(request.principal)})


@get("/parts/keys")
async def show_keys_part(
    request: ConsoleRequest, pages: NamedDependency[Pages], key_pages: NamedDependency[KeyPages]
) -> Response[str]:
    return pages.show(request, "parts/keys_table.html", await key_pages.listed(request.principal))


@post("/keys", status_code=200)
async def create_key(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    key_pages: NamedDependency[KeyPages],
    create_api_key: NamedDependency[CreateApiKey],
) -> Response[str]:
    """Create a key; only this response contains its token."""
    form = FormValues(data)
    day = form["expires_at"].strip()
    wanted: JsonObject = {
        "name": form["name"].strip(),
        **role_fields(form["role"]),
        "expires_at": f"{day}T23:59:59Z" if day else None,
    }
    try:
        body = decoded_body(CreateApiKeyBody, wanted)
        created = await create_api_key.execute(
            CreateApiKeyCommand(
                principal=request.principal,
                name=body.name,
                role=body.role,
                custom_role=body.custom_role,
                expires_at=body.expires_at,
            )
        )
    except ServiceError as error:
        if error.kind is not ErrorKind.INVALID:
            raise
        faults = FieldFaults.of_refusal(error, _FIELDS.get)
        context = await key_pages.form(request.principal, form, faults=faults)
        return pages.show(request, "parts/key_form.html", context, status=422)
    context = await key_pages.form(request.principal, created=created)
    headers = {HTMXHeaders.TRIGGER_EVENT.value: CHANGED}
    return pages.show(request, "parts/key_form.html", context, headers=headers)


@post("/keys/{key_id:str}/revoke", status_code=200)
async def revoke_key(
    *,
    request: ConsoleRequest,
    key_id: FromPath[str],
    pages: NamedDependency[Pages],
    key_pages: NamedDependency[KeyPages],
    revoke_api_key: NamedDependency[RevokeApiKey],
) -> Response[str]:
    """Revoke at once and permanently."""
    command = RevokeApiKeyCommand(principal=request.principal, key_id=ApiKeyId(key_id))
    revoked = revoked_api_key_view(key_id, await revoke_api_key.execute(command))
    context = {**await key_pages.listed(request.principal), "revoked": revoked}
    return pages.show(request, "parts/keys_table.html", context)
