"""Identity providers: where people of the organization sign in, and the tokens of their
directories."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.plugins.htmx import HTMXHeaders

from application.identity.check_identity_provider import CheckIdentityProvider, CheckIdentityProviderCommand
from application.identity.create_identity_provider import CreateIdentityProvider, CreateIdentityProviderCommand
from application.identity.delete_identity_provider import DeleteIdentityProvider, DeleteIdentityProviderCommand
from application.identity.queries import GetIdentityProvider, ListIdentityProviders
from application.identity.update_identity_provider import UpdateIdentityProvider, UpdateIdentityProviderCommand
from application.provisioning.create_scim_token import CreateScimToken, CreateScimTokenCommand
from application.provisioning.revoke_scim_token import RevokeScimToken, RevokeScimTokenCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.identity_provider import IdentityProvider
from domain.identity.role import Role
from interfaces.console.faults import entered_version
from interfaces.console.field_faults import NO_FAULTS, FieldFaults
from interfaces.console.form_values import FormValues
from interfaces.console.identity_provider_form import (
    PREFIX,
    identity_provider_body,
    identity_provider_field,
    identity_provider_values,
)
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console_paths import PATH
from interfaces.http.bodies import decoded_body
from interfaces.http.identity_providers.schemas import IdentityProviderBody, UpdateIdentityProviderBody
from interfaces.http.identity_providers.views import identity_provider_view

PROVIDERS = "/settings/identity-providers"
NEW = "/settings/identity-providers-new"
"""Not below the list: a provider may be named `new`."""
_FORM = "parts/identity_provider_form.html"
_TAKEN = {"identity_provider_exists": "name", "identity_provider_audience_taken": "client_id"}


def _context(
    request: ConsoleRequest,
    form: FormValues,
    provider: IdentityProvider | None,
    *,
    faults: FieldFaults = NO_FAULTS,
    said: str = "",
) -> dict[str, object]:
    return {
        "form": form,
        "provider": provider,
        "faults": faults,
        "said": said,
        "rules": form.rows(PREFIX),
        "is_platform": request.principal.platform,
    }


def _as_it_is(provider: IdentityProvider) -> FormValues:
    return FormValues(identity_provider_values(identity_provider_view(provider)))


@get(PROVIDERS)
async def show_identity_providers(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_identity_providers: NamedDependency[ListIdentityProviders],
) -> Response[str]:
    providers = await list_identity_providers.execute(request.principal)
    return pages.show(request, "identity_providers.html", {"providers": providers})


@get(NEW)
async def show_new_identity_provider(request: ConsoleRequest, pages: NamedDependency[Pages]) -> Response[str]:
    request.principal.require(Role.ADMIN)
    form = FormValues({"scopes": "openid profile email", f"{PREFIX}.0.role": Role.VIEWER.value})
    return pages.show(request, "identity_provider.html", _context(request, form, None))


@post(NEW, status_code=200)
async def add_identity_provider(
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    create_identity_provider: NamedDependency[CreateIdentityProvider],
) -> Response[str]:
    """Add it, and go to its page, where it is tested."""
    form = FormValues(data)
    try:
        body = decoded_body(IdentityProviderBody, identity_provider_body(form, is_new=True))
        provider = await create_identity_provider.execute(
            CreateIdentityProviderCommand(principal=request.principal, **body.values())
        )
    except ServiceError as error:
        return _refused(request, pages, form, None, error)
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}{PROVIDERS}/{provider.id}"})


@get(f"{PROVIDERS}/{{provider:str}}")
async def show_identity_provider(
    request: ConsoleRequest,
    provider: FromPath[str],
    pages: NamedDependency[Pages],
    get_identity_provider: NamedDependency[GetIdentityProvider],
) -> Response[str]:
    found = await get_identity_provider.execute(request.principal, provider)
    return pages.show(request, "identity_provider.html", _context(request, _as_it_is(found), found))


@post(f"{PROVIDERS}/{{provider:str}}", status_code=200)
async def save_identity_provider(
    *,
    request: ConsoleRequest,
    provider: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    get_identity_provider: NamedDependency[GetIdentityProvider],
    update_identity_provider: NamedDependency[UpdateIdentityProvider],
) -> Response[str]:
    """Save, unless another admin saved since the form was opened."""
    form, found = FormValues(data), await get_identity_provider.execute(request.principal, provider)
    try:
        body = decoded_body(UpdateIdentityProviderBody, identity_provider_body(form, is_new=False))
        saved = await update_identity_provider.execute(
            UpdateIdentityProviderCommand(
                principal=request.principal,
                provider=found.id,
                changes=body.changes(),
                expected_version=entered_version(form["version"]),
            )
        )
    except ServiceError as error:
        return _refused(request, pages, form, found, error)
    said = f"Saved as version {saved.version}. Rules decide with the next sign-in."
    return pages.show(request, _FORM, _context(request, _as_it_is(saved), saved, said=said))


@post(f"{PROVIDERS}/{{provider:str}}/test", status_code=200)
async def test_identity_provider_page(
    request: ConsoleRequest,
    provider: FromPath[str],
    pages: NamedDependency[Pages],
    check_identity_provider: NamedDependency[CheckIdentityProvider],
) -> Response[str]:
    """Read its metadata and keys."""
    command = CheckIdentityProviderCommand(principal=request.principal, provider=provider)
    result = await check_identity_provider.execute(command)
    return pages.show(request, "parts/identity_provider_tested.html", {"result": result})


@post(f"{PROVIDERS}/{{provider:str}}/delete", status_code=200)
async def delete_identity_provider_page(
    request: ConsoleRequest,
    provider: FromPath[str],
    delete_identity_provider: NamedDependency[DeleteIdentityProvider],
) -> Response[str]:
    await delete_identity_provider.execute(
        DeleteIdentityProviderCommand(principal=request.principal, provider=provider)
    )
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}{PROVIDERS}"})


@post(f"{PROVIDERS}/{{provider:str}}/scim-token", status_code=200)
async def create_scim_token_page(
    request: ConsoleRequest,
    provider: FromPath[str],
    pages: NamedDependency[Pages],
    create_scim_token: NamedDependency[CreateScimToken],
) -> Response[str]:
    """The new token, once."""
    token = await create_scim_token.execute(CreateScimTokenCommand(principal=request.principal, provider=provider))
    return pages.show(request, "parts/scim_token.html", {"token": token})


@post(f"{PROVIDERS}/{{provider:str}}/scim-token/revoke", status_code=200)
async def revoke_scim_token_page(
    request: ConsoleRequest,
    provider: FromPath[str],
    pages: NamedDependency[Pages],
    revoke_scim_token: NamedDependency[RevokeScimToken],
) -> Response[str]:
    await revoke_scim_token.execute(RevokeScimTokenCommand(principal=request.principal, provider=provider))
    return pages.show(request, "parts/scim_token.html", {"token": None})


def _refused(
    request: ConsoleRequest, pages: Pages, form: FormValues, provider: IdentityProvider | None, error: ServiceError
) -> Response[str]:
    """The form with its faults; an entered secret must be entered again. Raises errors that are
    none of the form."""
    request.principal.require(Role.ADMIN)
    if error.kind is ErrorKind.INVALID:
        faults = FieldFaults.of_refusal(error, lambda path: identity_provider_field(form, path))
    elif error.code in _TAKEN:
        faults = FieldFaults(by_field={_TAKEN[error.code]: [error.detail]})
    elif error.kind is ErrorKind.PRECONDITION:
        faults = FieldFaults(others=["Another admin saved it meanwhile. Load the page again to see their changes."])
    else:
        raise error
    if form["client_secret"]:
        again = {"client_secret": ["must be entered again"]}
        faults = FieldFaults(by_field={**again, **faults.by_field}, others=faults.others)
    kept = FormValues({name: value for name, value in form.beginning("").items() if name != "client_secret"})
    return pages.show(request, _FORM, _context(request, kept, provider, faults=faults), status=422)
