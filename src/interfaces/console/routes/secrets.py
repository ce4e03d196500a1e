"""Secrets and model providers of an organization."""

from collections.abc import Mapping

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from application.model_providers.check_model_provider import CheckModelProvider, CheckModelProviderCommand
from application.model_providers.create_model_provider import CreateModelProvider, CreateModelProviderCommand
from application.model_providers.delete_model_provider import DeleteModelProvider, DeleteModelProviderCommand
from application.model_providers.list_models import ListModels
from application.model_providers.queries import ListModelProviders
from application.secrets.delete_secret import DeleteSecret, DeleteSecretCommand
from application.secrets.queries import ListSecrets
from application.secrets.set_secret import SetSecret, SetSecretCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from interfaces.console.field_faults import NO_FAULTS, FieldFaults
from interfaces.console.form_values import FormValues
from interfaces.console.model_provider_form import CHOICES, PREFIX, provider_body, provider_field, without_key
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.whole_lists import all_of
from interfaces.http.bodies import decoded_body
from interfaces.http.model_providers.schemas import ModelProviderBody
from interfaces.http.model_providers.views import model_provider_view
from interfaces.http.secrets.references import secret_value
from interfaces.http.secrets.schemas import SetSecretBody

_PARTS = "parts/secrets.html"


class SecretPages:
    def __init__(self, *, list_secrets: ListSecrets, list_model_providers: ListModelProviders) -> None:
        self._list_secrets = list_secrets
        self._list_providers = list_model_providers

    async def of(
        self, principal: Principal, form: FormValues | None = None, faults: FieldFaults = NO_FAULTS, said: str = ""
    ) -> dict[str, object]:
        """Names without values. Raises FORBIDDEN."""
        secrets = await all_of(lambda page: self._list_secrets.execute(principal=principal, page=page))
        providers = await all_of(lambda page: self._list_providers.execute(principal=principal, page=page))
        return {
            "secrets": secrets,
            "providers": [model_provider_view(provider) for provider in providers],
            **CHOICES,
            "stored": None,
            "form": form or FormValues({}),
            "faults": faults,
            "said": said,
        }


@get("/secrets")
async def show_secrets(
    request: ConsoleRequest, pages: NamedDependency[Pages], secret_pages: NamedDependency[SecretPages]
) -> Response[str]:
    return pages.show(request, "secrets.html", await secret_pages.of(request.principal))


@post("/secrets", status_code=200)
async def set_secret_page(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    secret_pages: NamedDependency[SecretPages],
    set_secret: NamedDependency[SetSecret],
) -> Response[str]:
    """Store a new secret, or a new value of an existing one."""
    principal = request.principal
    # The value is stored unchanged; other form fields are stripped.
    wanted: JsonObject = {"name": data.get("secret_name", "").strip(), "value": data.get("secret_value", "")}
    try:
        body = decoded_body(SetSecretBody, wanted)
        result = await set_secret.execute(SetSecretCommand(principal=principal, name=body.name, value=body.value))
    except ServiceError as error:
        form = FormValues({"secret_name": str(wanted["name"])})
        return await _refused(
            request=request, pages=pages, secret_pages=secret_pages, error=error, form=form, prefix="secret"
        )
    said = f"{result.secret.name} is stored." if result.created else f"{result.secret.name} has another value now."
    return pages.show(request, _PARTS, await secret_pages.of(principal, said=said))


@post("/secrets/{name:str}/delete", status_code=200)
async def delete_secret_page(
    *,
    request: ConsoleRequest,
    name: FromPath[str],
    pages: NamedDependency[Pages],
    secret_pages: NamedDependency[SecretPages],
    delete_secret: NamedDependency[DeleteSecret],
) -> Response[str]:
    await delete_secret.execute(DeleteSecretCommand(principal=request.principal, name=name))
    return pages.show(request, _PARTS, await secret_pages.of(request.principal, said=f"{name} is deleted."))


@post("/model-providers", status_code=200)
async def create_provider_page(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    secret_pages: NamedDependency[SecretPages],
    create_model_provider: NamedDependency[CreateModelProvider],
) -> Response[str]:
    """Add a provider; its key is given directly, or by the name of a secret."""
    principal, form = request.principal, FormValues(data)
    try:
        body = decoded_body(ModelProviderBody, provider_body(form))
        provider = await create_model_provider.execute(
            CreateModelProviderCommand(
                principal=principal,
                name=body.name,
                kind=body.kind,
                base_url=body.base_url,
                wire=body.wire,
                echo_reasoning=body.echo_reasoning,
                cloud=None if body.cloud is None else body.cloud.to_domain(),
                api_key=None if body.api_key is None else secret_value(body.api_key),
            )
        )
    except ServiceError as error:
        # Otherwise the same form, sent again, would create a provider without a key.
        again = {"provider_api_key": ["must be entered again"]} if form["provider_api_key"] else {}
        return await _refused(
            request=request,
            pages=pages,
            secret_pages=secret_pages,
            error=error,
            form=without_key(form),
            prefix="provider",
            again=again,
        )
    said = f"Its models are named {provider.name}:MODEL."
    return pages.show(request, _PARTS, await secret_pages.of(principal, said=said))


@post("/model-providers/{name:str}/test", status_code=200)
async def test_provider_page(
    request: ConsoleRequest,
    name: FromPath[str],
    pages: NamedDependency[Pages],
    check_model_provider: NamedDependency[CheckModelProvider],
) -> Response[str]:
    """Test the provider with the first model that an agent uses."""
    result = await check_model_provider.execute(CheckModelProviderCommand(principal=request.principal, name=name))
    return pages.show(request, "parts/provider_tested.html", {"result": result})


@get("/parts/models")
async def show_model_options(
    request: ConsoleRequest, pages: NamedDependency[Pages], list_models: NamedDependency[ListModels]
) -> Response[str]:
    """Options of forms: the models of all providers that list theirs."""
    return pages.show(request, "parts/model_options.html", {"models": await list_models.of_all(request.principal)})


@post("/model-providers/{name:str}/delete", status_code=200)
async def delete_provider_page(
    *,
    request: ConsoleRequest,
    name: FromPath[str],
    pages: NamedDependency[Pages],
    secret_pages: NamedDependency[SecretPages],
    delete_model_provider: NamedDependency[DeleteModelProvider],
) -> Response[str]:
    """Delete at once, even if agents name it."""
    await delete_model_provider.execute(DeleteModelProviderCommand(principal=request.principal, name=name))
    return pages.show(request, _PARTS, await secret_pages.of(request.principal, said=f"{name} is deleted."))


async def _refused(
    *,
    request: ConsoleRequest,
    pages: Pages,
    secret_pages: SecretPages,
    error: ServiceError,
    form: FormValues,
    prefix: str,
    again: Mapping[str, list[str]] | None = None,
) -> Response[str]:
    """The form with its faults; secret values must be entered `again`."""
    if error.kind is ErrorKind.INVALID:
        faults = FieldFaults.of_refusal(
            error, lambda path: f"{prefix}_{provider_field(form, path).removeprefix(PREFIX)}"
        )
    elif error.code == "model_provider_exists":
        faults = FieldFaults(by_field={"provider_name": [error.detail]})
    else:
        raise error
    request.principal.require(Permission.SECRETS_MANAGE)
    faults = FieldFaults(by_field={**(again or {}), **faults.by_field}, others=faults.others)
    return pages.show(request, _PARTS, await secret_pages.of(request.principal, form, faults), status=422)
