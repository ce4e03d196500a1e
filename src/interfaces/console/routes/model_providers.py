"""A model provider of an organization: its form, and what is saved of it."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from application.model_providers.queries import GetModelProvider
from application.model_providers.update_model_provider import UpdateModelProvider, UpdateModelProviderCommand
from application.secrets.queries import ListSecrets
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.model_providers.provider import ModelProvider
from interfaces.console.faults import entered_version
from interfaces.console.field_faults import NO_FAULTS, FieldFaults
from interfaces.console.form_values import FormValues
from interfaces.console.model_provider_form import (
    CHOICES,
    DEPLOYMENT,
    provider_changes,
    provider_field,
    provider_values,
    without_key,
)
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.whole_lists import all_of
from interfaces.http.bodies import decoded_body
from interfaces.http.model_providers.schemas import UpdateModelProviderBody
from interfaces.http.model_providers.views import model_provider_view

PROVIDER = "/settings/model-providers/{name:str}"
_FORM = "parts/provider_form.html"


class ModelProviderPages:
    def __init__(self, *, get_model_provider: GetModelProvider, list_secrets: ListSecrets) -> None:
        self._get = get_model_provider
        self._list_secrets = list_secrets

    async def provider(self, principal: Principal, name: str) -> ModelProvider:
        """Raises FORBIDDEN, NOT_FOUND."""
        principal.require(Permission.MODELS_MANAGE)
        return await self._get.execute(principal, name)

    async def of(
        self,
        principal: Principal,
        provider: ModelProvider,
        form: FormValues | None = None,
        *,
        faults: FieldFaults = NO_FAULTS,
        said: str = "",
    ) -> dict[str, object]:
        """The form as it was entered, or as the provider is."""
        secrets = await all_of(lambda page: self._list_secrets.execute(principal=principal, page=page))
        return {
            **CHOICES,
            "stored": model_provider_view(provider),
            "secrets": secrets,
            "form": (entered := form or shown(provider)),
            "deployments": entered.rows(DEPLOYMENT),
            "faults": faults,
            "said": said,
        }


def shown(provider: ModelProvider) -> FormValues:
    return FormValues(provider_values(model_provider_view(provider)))


@get(PROVIDER)
async def show_model_provider(
    request: ConsoleRequest,
    name: FromPath[str],
    pages: NamedDependency[Pages],
    model_provider_pages: NamedDependency[ModelProviderPages],
) -> Response[str]:
    provider = await model_provider_pages.provider(request.principal, name)
    return pages.show(request, "model_provider.html", await model_provider_pages.of(request.principal, provider))


@post(PROVIDER, status_code=200)
async def save_model_provider(
    *,
    request: ConsoleRequest,
    name: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    model_provider_pages: NamedDependency[ModelProviderPages],
    update_model_provider: NamedDependency[UpdateModelProvider],
) -> Response[str]:
    """Save what was changed, unless another admin saved since the form was opened. The next model
    call uses it."""
    principal, form = request.principal, FormValues(data)
    provider = await model_provider_pages.provider(principal, name)
    try:
        body = decoded_body(UpdateModelProviderBody, provider_changes(form, shown(provider), provider.deployments))
        saved = await update_model_provider.execute(
            UpdateModelProviderCommand(
                principal=principal,
                name=provider.name,
                changes=body.changes(),
                expected_version=entered_version(form["version"]),
            )
        )
    except ServiceError as error:
        faults = _faults(error, form)
        context = await model_provider_pages.of(principal, provider, without_key(form), faults=faults)
        return pages.show(request, _FORM, context, status=422)
    said = f"Saved as version {saved.version}. The next model call uses it."
    return pages.show(request, _FORM, await model_provider_pages.of(principal, saved, said=said))


def _faults(error: ServiceError, form: FormValues) -> FieldFaults:
    """The faults of a form, whose keys must be entered again. Raises errors that are none of the
    form."""
    if error.kind is ErrorKind.PRECONDITION:
        others = ["Another admin saved it meanwhile. Load the page again to see their changes."]
        return FieldFaults(others=others)
    if error.kind is not ErrorKind.INVALID:
        raise error
    faults = FieldFaults.of_refusal(error, lambda path: provider_field(form, path))
    entered = [name for name, value in form.beginning("").items() if name.endswith("api_key") and value]
    again = {name: ["must be entered again"] for name in entered}
    return FieldFaults(by_field={**again, **faults.by_field}, others=faults.others)
