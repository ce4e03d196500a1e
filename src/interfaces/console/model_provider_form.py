"""The form of a model provider: fields from its view, and the API's body from the fields."""

from domain.json_value import JsonObject
from domain.model_providers.cloud import CloudIdentity
from domain.model_providers.provider import EchoReasoning, ProviderKind, ProviderWire
from interfaces.console.form_values import FormValues
from interfaces.http.model_providers.views import ModelProviderView

PREFIX = "provider_"
CHOICES = {
    "kinds": list(ProviderKind),
    "wires": list(ProviderWire),
    "echoes": list(EchoReasoning),
    "identities": list(CloudIdentity),
}
_CLOUD = ("region", "project", "role", "profile", "tenant_id", "client_id")


def provider_values(view: ModelProviderView) -> dict[str, str]:
    """All fields but an entered key, which is never shown again."""
    cloud, key = view["cloud"], view["api_key"]
    values = {f"{PREFIX}{name}": str(view[name]) for name in ("name", "kind", "base_url", "wire", "echo_reasoning")}
    values |= {f"{PREFIX}{name}": str(value) for name, value in (cloud or {}).items() if value is not None}
    if isinstance(key, dict):
        values[f"{PREFIX}secret"] = str(key["secret"])
    return {**values, "version": str(view["version"])}


def provider_body(form: FormValues) -> JsonObject:
    """The API's body of a new provider."""
    body: JsonObject = {
        "name": form["provider_name"].strip(),
        "kind": form["provider_kind"],
        "wire": form["provider_wire"] or ProviderWire.AUTO.value,
        "echo_reasoning": form["provider_echo_reasoning"] or EchoReasoning.TOOL_LOOP.value,
        "base_url": form["provider_base_url"].strip() or None,
        "api_key": None,
        "cloud": _cloud(form),
    }
    if secret := form["provider_secret"]:
        body["api_key"] = {"secret": secret}
    elif key := form["provider_api_key"]:
        body["api_key"] = key
    return body


def provider_changes(form: FormValues, shown: FormValues) -> JsonObject:
    """The API's body of a change: the fields that differ from those `shown`, so that an address which follows the region
    does. An entered key comes before the name of a secret; without one the key stays, unless it is removed."""
    entered, before = provider_body(form), provider_body(shown)
    changes = {name: value for name, value in entered.items() if name != "name" and value != before[name]}
    if form.has("provider_no_key"):
        return {**changes, "api_key": None}
    if key := form["provider_api_key"]:
        return {**changes, "api_key": key}
    if entered["api_key"] is None:
        changes.pop("api_key", None)
    return changes


def provider_field(path: str) -> str:
    """The field of a path in the body."""
    return f"{PREFIX}{path.removeprefix('cloud.').partition('.')[0]}"


def without_key(form: FormValues) -> FormValues:
    """The entered fields, without a key."""
    kept = {name: value for name, value in form.beginning("").items() if name != "provider_api_key"}
    return FormValues(kept)


def _cloud(form: FormValues) -> JsonObject | None:
    """The settings that are filled in; None if there are none."""
    given: JsonObject = {name: value for name in _CLOUD if (value := form[f"{PREFIX}{name}"].strip())}
    if form["provider_identity"] == CloudIdentity.SERVICE.value:
        given["identity"] = CloudIdentity.SERVICE.value
    return given or None
