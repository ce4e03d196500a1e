"""The form of a model provider: fields from its view, and the API's body from the fields."""

from collections.abc import Iterable, Mapping

from domain.errors import invalid
from domain.json_value import JsonObject, JsonValue
from domain.model_providers.cloud import CloudIdentity
from domain.model_providers.deployment import Deployment
from domain.model_providers.provider import EchoReasoning, ProviderKind, ProviderWire
from domain.secrets.secret import SecretValue
from interfaces.console.form_values import FormValues
from interfaces.http.model_providers.views import ModelProviderView

PREFIX = "provider_"
DEPLOYMENT = "deployment"
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
    for row, deployment in enumerate(view["deployments"]):
        key, at = deployment["api_key"], f"{DEPLOYMENT}.{row}."
        values |= {f"{at}{name}": str(deployment[name] or "") for name in ("name", "base_url", "weight")}
        values |= {f"{at}was": deployment["name"], f"{at}has_key": "" if key is None else "yes"}
        if isinstance(key, dict):
            values[f"{at}secret"] = str(key["secret"])
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


def provider_changes(form: FormValues, shown: FormValues, stored: Iterable[Deployment]) -> JsonObject:
    """The API's body of a change: the fields that differ from those `shown`, so that an address
    which follows the region does. An entered key comes before the name of a secret; without one the
    key stays, unless it is removed. `stored` are the deployments with their keys. Raises INVALID
    for a weight that is no number."""
    entered, before = provider_body(form), provider_body(shown)
    keys = {each.name: each.api_key for each in stored}
    entered["deployments"], before["deployments"] = _deployments(form, keys), _deployments(shown, keys)
    if form.wrong:
        raise invalid("form_invalid", "The form has invalid fields.", *form.wrong)
    changes = {name: value for name, value in entered.items() if name != "name" and value != before[name]}
    if form.has("provider_no_key"):
        return {**changes, "api_key": None}
    if key := form["provider_api_key"]:
        return {**changes, "api_key": key}
    if entered["api_key"] is None:
        changes.pop("api_key", None)
    return changes


def provider_field(form: FormValues, path: str) -> str:
    """The field of a path in the body."""
    if path.startswith(f"{DEPLOYMENT}."):
        return path  # reported by reading the form
    if path.startswith("deployments."):
        _, index, field = f"{path}.".split(".", 2)
        rows = form.rows(DEPLOYMENT)
        row = rows[int(index)] if index.isdecimal() and int(index) < len(rows) else index
        return f"{DEPLOYMENT}.{row}.{field.partition('.')[0] or 'name'}"
    return f"{PREFIX}{path.removeprefix('cloud.').partition('.')[0]}"


def without_key(form: FormValues) -> FormValues:
    """The entered fields, without a key."""
    kept = {name: value for name, value in form.beginning("").items() if not name.endswith("api_key")}
    return FormValues(kept)


def _deployments(form: FormValues, keys: Mapping[str, SecretValue | None]) -> list[JsonValue]:
    """With the keys as they will be: what was entered, else a named secret, else the stored one."""
    found: list[JsonValue] = []
    for row in form.rows(DEPLOYMENT):
        at = f"{DEPLOYMENT}.{row}."
        key, stored = form[f"{at}api_key"], keys.get(form[f"{at}was"])
        value: JsonValue = key or None
        if form.has(f"{at}no_key"):
            value = None
        elif not key and (secret := form[f"{at}secret"]):
            value = {"secret": secret}
        elif not key and isinstance(stored, str):
            value = stored
        weight = form.whole(f"{at}weight")
        found.append(
            {
                "name": form[f"{at}name"].strip(),
                "base_url": form[f"{at}base_url"].strip() or None,
                "api_key": value,
                "weight": 1 if weight is None else weight,
            }
        )
    return found


def _cloud(form: FormValues) -> JsonObject | None:
    """The settings that are filled in; None if there are none."""
    given: JsonObject = {name: value for name in _CLOUD if (value := form[f"{PREFIX}{name}"].strip())}
    if form["provider_identity"] == CloudIdentity.SERVICE.value:
        given["identity"] = CloudIdentity.SERVICE.value
    return given or None
