"""The settings of the organization, which apply to all its agents."""

from litestar import Response, get, post
from litestar.di import NamedDependency

from application.identity.queries import GetOrganization
from application.identity.update_organization import UpdateOrganization, UpdateOrganizationCommand
from application.tools.review_tool_policies import ReviewToolPolicies, ReviewToolPoliciesCommand
from application.webhooks.create_webhook_key import CreateWebhookKey
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.permission import Permission
from interfaces.console.field_faults import NO_FAULTS, FieldFaults
from interfaces.console.form_values import FormValues
from interfaces.console.organization_form import organization_body, organization_field, organization_values
from interfaces.console.pages import Pages
from interfaces.console.policy_rows import PREFIX
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.version_changes import Change, changes
from interfaces.http.bodies import decoded_body
from interfaces.http.organization.schemas import UpdateOrganizationBody
from interfaces.http.organization.views import organization_view
from interfaces.http.problems import STATUS_OF_KIND
from interfaces.http.webhooks.views import created_webhook_key_view

_FORM = "parts/settings_form.html"


def _context(
    form: FormValues,
    organization: Organization,
    *,
    faults: FieldFaults = NO_FAULTS,
    replaced: tuple[Change, ...] | None = None,
    warnings: tuple[str, ...] | None = None,
) -> dict[str, object]:
    """`replaced` are another user's changes that saving again would overwrite; `warnings`
    concern the saved settings."""
    return {
        "form": form,
        "organization": organization,
        "faults": faults,
        "replaced": replaced,
        "warnings": warnings,
        "rules": form.rows(PREFIX),
    }


def _as_it_is(organization: Organization) -> FormValues:
    return FormValues(organization_values(organization_view(organization)))


@get("/settings")
async def show_settings(
    request: ConsoleRequest, pages: NamedDependency[Pages], get_organization: NamedDependency[GetOrganization]
) -> Response[str]:
    request.principal.require(Permission.ORGANIZATION_MANAGE)
    organization = await get_organization.execute(principal=request.principal)
    return pages.show(request, "settings.html", _context(_as_it_is(organization), organization))


@post("/settings", status_code=200)
async def save_settings(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    get_organization: NamedDependency[GetOrganization],
    update_organization: NamedDependency[UpdateOrganization],
    review_tool_policies: NamedDependency[ReviewToolPolicies],
) -> Response[str]:
    """Save; effective at once. If another user saved meanwhile, first show which of their
    changes would be overwritten."""
    principal, form = request.principal, FormValues(data)
    try:
        saved = await update_organization.execute(_change(principal, form))
    except ServiceError as error:
        if error.kind not in (ErrorKind.INVALID, ErrorKind.PRECONDITION):
            raise
        organization = await get_organization.execute(principal=principal)
        if error.kind is ErrorKind.PRECONDITION:
            now = organization_view(organization)
            mine = {**now, **organization_body(form.again())}
            form = FormValues({**form.beginning(""), "version": str(organization.version)})
            context = _context(form, organization, replaced=changes(dict(now), mine))
        else:
            faults = FieldFaults.of_refusal(error, lambda path: organization_field(form, path))
            context = _context(form, organization, faults=faults)
        return pages.show(request, _FORM, context, status=STATUS_OF_KIND[error.kind])
    warnings = await review_tool_policies.execute(ReviewToolPoliciesCommand(principal=principal, saved=saved))
    return pages.show(request, _FORM, _context(_as_it_is(saved), saved, warnings=warnings))


@post("/settings/webhook-key", status_code=200)
async def renew_webhook_key(
    request: ConsoleRequest, pages: NamedDependency[Pages], create_webhook_key: NamedDependency[CreateWebhookKey]
) -> Response[str]:
    """The new key, once."""
    created = created_webhook_key_view(await create_webhook_key.execute(request.principal))
    return pages.show(request, "parts/webhook_key.html", {"created": created})


def _change(principal: Principal, form: FormValues) -> UpdateOrganizationCommand:
    """Raises INVALID."""
    principal.require(Permission.ORGANIZATION_MANAGE)
    body = decoded_body(UpdateOrganizationBody, organization_body(form))
    return UpdateOrganizationCommand(
        principal=principal,
        changes=body.to_changes(),
        limits=body.to_limit_changes(),
        expected_version=form.again().whole("version") or 0,
    )
