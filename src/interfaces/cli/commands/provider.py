"""`dragoman provider`: model providers."""

from typing import Annotated

import typer

from domain.json_value import JsonObject, JsonValue
from domain.model_providers.provider import ProviderKind
from interfaces.cli.answers import read_as
from interfaces.cli.api import ServiceApi, path_to
from interfaces.cli.failures import FAILED, BadUsage, wrong_choice
from interfaces.cli.field_values import field_values
from interfaces.cli.session import JsonFlag, Session, session_of
from interfaces.cli.terminal import duration, one_line
from interfaces.http.model_providers.views import (
    DeploymentView,
    ModelNamesView,
    ModelProviderView,
    ProviderCheckView,
    ProviderTestView,
)
from interfaces.http.secrets.reference_views import WriteOnlyView

provider_app = typer.Typer(
    help="Manage the organization's model providers.",
    no_args_is_help=True,
    epilog="Example: printenv ACME_KEY | dragoman provider add acme --kind openai --base-url https://models.example.com/v1",
)

_SAID_LIMIT = 300
"""Characters of a provider's message; --json has all of them."""
_KINDS = tuple(kind.value for kind in ProviderKind)
_FIELDS = ("kind", "base_url", "wire", "echo_reasoning", "cloud", "deployments")
"""What an update changes beside the key."""
Name = Annotated[str, typer.Argument(metavar="NAME", help="Models are then named NAME:model.")]


@provider_app.command(
    "add",
    epilog="Examples: printenv ACME_KEY | dragoman provider add acme --kind openai --base-url https://models.example.com/v1;"
    " dragoman provider add claude --kind anthropic --secret ANTHROPIC;"
    " dragoman provider add aws --kind bedrock --region eu-central-1 --secret AWS",
)
def add_provider(
    *,
    context: typer.Context,
    name: Name,
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help=f"Its vendor: {', '.join(_KINDS)}.")],
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Its URL. Default: the vendor.")
    ] = None,
    wire: Annotated[
        str | None,
        typer.Option(
            "--wire",
            metavar="WIRE",
            help="Of all kinds but anthropic: auto, responses, chat or native. Default: auto.",
        ),
    ] = None,
    echo_reasoning: Annotated[
        str | None,
        typer.Option(
            "--echo-reasoning",
            metavar="WHERE",
            help="Of chat completions: tool_loop, always or never. Default: tool_loop.",
        ),
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", metavar="REGION", help="Of kinds bedrock and vertex.")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="PROJECT", help="Of kind vertex: the project of Google Cloud.")
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(
            "--identity", metavar="WHOSE", help="Of clouds: key, or service, that of Dragoman's machine. Default: key."
        ),
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ARN", help="Of kind bedrock: a role that is assumed.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="Of kind bedrock, with --identity service.")
    ] = None,
    tenant_id: Annotated[
        str | None, typer.Option("--tenant-id", metavar="ID", help="Of kind azure: a tenant of Microsoft Entra.")
    ] = None,
    client_id: Annotated[
        str | None,
        typer.Option("--client-id", metavar="ID", help="Of kind azure: an application, or a managed identity."),
    ] = None,
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="NAME", help="The named secret that holds its key.")
    ] = None,
    no_key: Annotated[bool, typer.Option("--no-key", help="The provider needs no key.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a provider. Its key is prompted for, read from a pipe, or taken from a named secret;
    it cannot be read back."""
    session = session_of(context)
    if kind not in _KINDS:  # before its key is asked for
        raise wrong_choice("--kind", kind, _KINDS)
    if secret is not None and no_key:
        raise BadUsage("--secret and --no-key exclude each other.")
    body: JsonObject = {"name": name, "kind": kind}
    if base_url is not None:
        body["base_url"] = base_url
    if wire is not None:
        body["wire"] = wire
    if echo_reasoning is not None:
        body["echo_reasoning"] = echo_reasoning
    settings = {
        "region": region,
        "project": project,
        "identity": identity,
        "role": role,
        "profile": profile,
        "tenant_id": tenant_id,
        "client_id": client_id,
    }
    cloud: JsonObject = {setting: value for setting, value in settings.items() if value is not None}
    if cloud:
        body["cloud"] = cloud
    if secret is not None:
        body["api_key"] = {"secret": secret}
    elif not no_key and identity != "service":
        body["api_key"] = _read_key(session, name, otherwise="If none is needed, give --no-key.")
    session.show(
        ModelProviderView,
        lambda api: api.post(path_to("model-providers"), body),
        lambda provider: session.terminal.note(
            f"Added {provider['name']} at {provider['base_url']}. Its models are named {provider['name']}:MODEL."
        ),
        as_json=as_json,
        creates=True,
    )


@provider_app.command("list", epilog="Example: dragoman provider list --json")
def list_providers(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the organization's providers, without their keys."""
    session_of(context).show_list(
        ModelProviderView,
        path_to("model-providers"),
        ("name", "kind", "base URL", "key", "created"),
        lambda provider, _: (
            provider["name"],
            provider["kind"],
            provider["base_url"],
            _key(provider["api_key"]),
            provider["created_at"],
        ),
        empty="The organization has no model providers. Add one with `dragoman provider add NAME`.",
        as_json=as_json,
    )


@provider_app.command("show", epilog="Example: dragoman provider show acme")
def show_provider(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Show a provider, without its key."""
    session = session_of(context)

    def display(provider: ModelProviderView) -> None:
        cloud = {} if provider["cloud"] is None else {**provider["cloud"]}
        session.terminal.fields(
            {
                "name": provider["name"],
                "kind": provider["kind"],
                "base URL": provider["base_url"],
                "wire": provider["wire"],
                "echo reasoning": provider["echo_reasoning"],
                "key": _key(provider["api_key"]),
                "cloud": ", ".join(f"{setting} {value}" for setting, value in cloud.items() if value is not None),
                "deployments": ", ".join(map(_deployment, provider["deployments"])),
                "version": str(provider["version"]),
                "created": provider["created_at"],
            }
        )

    session.show(ModelProviderView, lambda api: api.get(path_to("model-providers", name)), display, as_json=as_json)


@provider_app.command(
    "update",
    epilog="Examples: dragoman provider update acme base_url=https://models.example.com/v2 wire=responses;"
    " printenv ACME_KEY | dragoman provider update acme --key; dragoman provider update acme --secret ACME;"
    ' dragoman provider update aws cloud=\'{"region": "eu-west-1"}\'',
)
def update_provider(
    *,
    context: typer.Context,
    name: Name,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD=VALUE...", help="Fields as in the API; a value is JSON, else text."),
    ] = None,
    key: Annotated[bool, typer.Option("--key", help="Prompt for a new key, or read it from a pipe.")] = False,
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="NAME", help="The named secret that holds its key.")
    ] = None,
    no_key: Annotated[bool, typer.Option("--no-key", help="Remove its key.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Change fields of a provider, or its key. The next model call uses the change."""
    session = session_of(context)
    if key + (secret is not None) + no_key > 1:
        raise BadUsage("--key, --secret and --no-key exclude each other.")
    entries = fields or []
    if any(entry.startswith("api_key=") for entry in entries):
        raise BadUsage("A key is no argument, as histories store those: give --key, --secret NAME or --no-key.")
    changes = field_values(entries, texts=("base_url",), fields=_FIELDS)
    if _has_key(changes.get("deployments")):
        raise BadUsage('A key of a deployment is a reference here, {"secret": NAME}: histories store arguments.')
    if key:
        changes["api_key"] = _read_key(session, name, otherwise="To remove the key, give --no-key.")
    elif secret is not None:
        changes["api_key"] = {"secret": secret}
    elif no_key:
        changes["api_key"] = None
    if not changes:
        raise BadUsage("Nothing to change: give FIELD=VALUE, --key, --secret or --no-key.")
    session.show(
        ModelProviderView,
        lambda api: api.patch(path_to("model-providers", name), changes),
        lambda provider: session.terminal.note(
            f"Changed {provider['name']}. See whether it works: dragoman provider test {provider['name']}"
        ),
        as_json=as_json,
    )


@provider_app.command("test", epilog="Example: dragoman provider test acme --model gpt-5-mini")
def run_test(
    context: typer.Context,
    name: Name,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="The model to test. Default: the first that an agent uses."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Test a provider's key, a model, a tool call and streaming. Costs a few tokens; exit code 1 on
    failure."""
    session = session_of(context)
    body: JsonObject = {} if model is None else {"model": model.removeprefix(f"{name}:")}

    async def test(api: ServiceApi) -> int:
        document = await api.post(path_to("model-providers", name, "test"), body)
        outcome = read_as(ProviderTestView, document)
        if as_json:
            session.terminal.json(document)
        else:
            for check in outcome["checks"]:
                session.terminal.line(_check_line(check))
            if outcome["model"] is None and any(check["outcome"] == "ok" for check in outcome["checks"]):
                hint = f"Test one of its models with --model NAME; `dragoman provider models {name}` lists them."
                session.terminal.note(hint)
        return 0 if outcome["ok"] else FAILED

    session.perform(test)


@provider_app.command("models", epilog="Example: dragoman provider models acme")
def list_models(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """List the models of a provider, as the provider lists them."""
    session = session_of(context)

    async def show(api: ServiceApi) -> None:
        document = await api.get(path_to("model-providers", name, "models"))
        if as_json:
            session.terminal.json(document)
            return
        for model in read_as(ModelNamesView, document)["data"]:
            session.terminal.line(model)

    session.perform(show)


@provider_app.command("delete", epilog="Example: dragoman provider delete acme")
def delete_provider(context: typer.Context, name: Name) -> None:
    """Delete a provider and its key, even if agents name it."""
    session_of(context).delete(path_to("model-providers", name), f"Deleted {name}.")


def _read_key(session: Session, name: str, *, otherwise: str) -> str:
    key = session.read_secret(f"API key of {name} (not shown): ").strip()
    if not key:
        raise BadUsage(f"The key is empty. {otherwise}")
    return key


def _has_key(deployments: JsonValue) -> bool:
    """Whether a deployment has its key as text."""
    entries = deployments if isinstance(deployments, list) else []
    return any(isinstance(entry, dict) and isinstance(entry.get("api_key"), str) for entry in entries)


def _deployment(deployment: DeploymentView) -> str:
    return f"{deployment['name']} at {deployment['base_url'] or 'the base URL'}, weight {deployment['weight']}"


def _key(key: WriteOnlyView | None) -> str:
    match key:
        case None:
            return "none"
        case str():
            return "stored"
        case reference:
            return f"secret {reference['secret']}"


def _check_line(check: ProviderCheckView) -> str:
    place = "" if check["deployment"] is None else f"{check['deployment']}: "
    name = check["check"].replace("_", " ")
    took = f" ({duration(check['latency_ms'])})" if check["latency_ms"] else ""
    said = check["provider_error"]
    words = (
        f" The provider said: {one_line(said['message'], _SAID_LIMIT)}" if said is not None and said["message"] else ""
    )
    return f"{place}{name:<12} {check['outcome']:<8} {check['detail']}{took}{words}"
