"""All organizations, for platform keys: the list, a new one, what only a platform changes of one,
and an admin key."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.plugins.htmx import HTMXHeaders

from application.identity.create_organization import CreateOrganization, CreateOrganizationCommand
from application.identity.create_organization_key import CreateOrganizationKey, CreateOrganizationKeyCommand
from application.identity.queries import GetOrganization, ListOrganizations
from application.identity.update_organization import UpdateOrganization, UpdateOrganizationCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.organization import Organization
from domain.ids import OrganizationId
from domain.json_value import JsonObject
from interfaces.console.faults import entered_version
from interfaces.console.field_faults import NO_FAULTS, FieldFaults
from interfaces.console.form_values import FormValues, joined, text
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.whole_lists import all_of
from interfaces.http.bodies import decoded_body
from interfaces.http.organization.schemas import CreateOrganizationBody, OrganizationKeyBody, UpdateOrganizationBody
from interfaces.http.organization.views import organization_view

ORGANIZATIONS = "/settings/organizations"
ONE = f"{ORGANIZATIONS}/{{organization_id:str}}"
CHANGED = "organizations-changed"
"""Event that reloads the list."""
_FORM = "parts/organization_form.html"
_KEY = "parts/organization_key.html"
_COUNTS = ("queue_weight", "max_queued", "max_running")
_FIELDS = frozenset({"name", "daily_budget_usd", "mcp_kinds", *_COUNTS})


@get(ORGANIZATIONS)
async def show_organizations(
    request: ConsoleRequest, pages: NamedDependency[Pages], list_organizations: NamedDependency[ListOrganizations]
) -> Response[str]:
    principal = request.principal
    found = await all_of(lambda page: list_organizations.execute(principal=principal, page=page))
    return pages.show(request, "organizations.html", {"organizations": found})


@post(ORGANIZATIONS, status_code=200)
async def create_organization_page(
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    create_organization: NamedDependency[CreateOrganization],
) -> Response[str]:
    """Create it with its defaults; only this response has the token of its first admin key."""
    body = decoded_body(CreateOrganizationBody, {"name": data.get("name", "").strip()})
    created = await create_organization.execute(
        CreateOrganizationCommand(
            principal=request.principal, name=body.name, settings=body.to_changes(), limits=body.to_limits()
        )
    )
    told = {"name": created.organization.name, "token": created.admin_key.token}
    return pages.show(request, _KEY, told, headers={HTMXHeaders.TRIGGER_EVENT.value: CHANGED})


@get(ONE)
async def show_any_organization(
    request: ConsoleRequest,
    organization_id: FromPath[str],
    pages: NamedDependency[Pages],
    get_organization: NamedDependency[GetOrganization],
) -> Response[str]:
    request.principal.require_platform()
    found = await get_organization.execute(principal=request.principal, organization_id=OrganizationId(organization_id))
    return pages.show(request, "organization.html", _context(_as_it_is(found), found))


@post(ONE, status_code=200)
async def save_any_organization(
    *,
    request: ConsoleRequest,
    organization_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    get_organization: NamedDependency[GetOrganization],
    update_organization: NamedDependency[UpdateOrganization],
) -> Response[str]:
    """Save what only a platform changes, unless another one saved since the form was opened.
    Effective at once."""
    principal, form = request.principal, FormValues(data)
    principal.require_platform()
    found = await get_organization.execute(principal=principal, organization_id=OrganizationId(organization_id))
    try:
        body = decoded_body(UpdateOrganizationBody, _body(form))
        saved = await update_organization.execute(
            UpdateOrganizationCommand(
                principal=principal,
                organization_id=found.id,
                changes=body.to_changes(),
                limits=body.to_limit_changes(),
                expected_version=entered_version(form["version"]),
            )
        )
    except ServiceError as error:
        return pages.show(request, _FORM, _context(form.again(), found, faults=_faults(form, error)), status=422)
    said = f"Saved as version {saved.version}. It is in effect."
    return pages.show(request, _FORM, _context(_as_it_is(saved), saved, said=said))


@post(f"{ONE}/keys", status_code=200)
async def create_organization_key_page(
    *,
    request: ConsoleRequest,
    organization_id: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    create_organization_key: NamedDependency[CreateOrganizationKey],
) -> Response[str]:
    """For an organization that has lost its admin keys. Only this response has the token."""
    body = decoded_body(OrganizationKeyBody, {"name": data.get("key_name", "").strip()})
    created = await create_organization_key.execute(
        CreateOrganizationKeyCommand(
            principal=request.principal, organization_id=OrganizationId(organization_id), name=body.name
        )
    )
    return pages.show(request, _KEY, {"name": created.key.name, "token": created.token})


def _context(
    form: FormValues, organization: Organization, *, faults: FieldFaults = NO_FAULTS, said: str = ""
) -> dict[str, object]:
    return {"form": form, "organization": organization, "faults": faults, "said": said}


def _as_it_is(organization: Organization) -> FormValues:
    view = dict(organization_view(organization))
    values = {name: text(view[name]) for name in ("version", "name", "daily_budget_usd", *_COUNTS)}
    return FormValues({**values, "mcp_kinds": joined(organization.mcp_kinds or ())})


def _body(form: FormValues) -> JsonObject:
    body: JsonObject = {"name": form["name"].strip(), "daily_budget_usd": form.number("daily_budget_usd")}
    body |= {name: form.whole(name) for name in _COUNTS}
    body["mcp_kinds"] = form.lines("mcp_kinds") or None
    return body


def _faults(form: FormValues, error: ServiceError) -> FieldFaults:
    """Raises errors that are none of the form."""
    if error.kind is ErrorKind.PRECONDITION:
        return FieldFaults(others=["It was saved meanwhile. Load the page again to see the changes."])
    if error.kind is not ErrorKind.INVALID:
        raise error
    faults = (*form.wrong, *error.violations)
    return FieldFaults.of(faults, lambda path: first if (first := path.partition(".")[0]) in _FIELDS else None)
