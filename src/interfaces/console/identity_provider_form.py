"""The form of an identity provider: fields from its view, and the API's body from the fields."""

from domain.json_value import JsonObject
from interfaces.console.form_values import FormValues, joined
from interfaces.http.identity_providers.views import IdentityProviderView

PREFIX = "rule"
_TEXTS = ("name", "issuer", "client_id")
_FIELDS = frozenset({*_TEXTS, "client_secret", "cli_client_id", "scopes", "audiences", "installation"})
_RULE = ("claim", "value", "role", "organization_id", "custom_role")


def identity_provider_values(view: IdentityProviderView) -> dict[str, str]:
    """All fields but the secret, which is never shown again."""
    values = {
        "version": str(view["version"]),
        "name": view["name"],
        "issuer": view["issuer"],
        "client_id": view["client_id"],
        "cli_client_id": view["cli_client_id"] or "",
        "scopes": " ".join(view["scopes"]),
        "audiences": joined(view["audiences"]),
    }
    if view["installation"]:
        values["installation"] = "on"
    for at, rule in enumerate(view["rules"]):
        named = {f"{PREFIX}.{at}.{name}": value for name, value in rule.items()}
        values |= {name: str(value) for name, value in named.items() if value is not None}
    return values


def identity_provider_body(form: FormValues, *, is_new: bool) -> JsonObject:
    """The API's body; of a stored provider without issuer, which cannot change, and without a
    secret that stays."""
    body: JsonObject = {name: form[name].strip() for name in _TEXTS if is_new or name != "issuer"}
    body |= {
        "cli_client_id": form["cli_client_id"].strip() or None,
        "scopes": [*form["scopes"].split()],
        "audiences": form.lines("audiences"),
        "rules": [_rule(form, f"{PREFIX}.{row}") for row in form.rows(PREFIX)],
        "installation": form.has("installation"),
    }
    if secret := form["client_secret"]:
        body["client_secret"] = secret
    elif form.has("public"):
        body["client_secret"] = None
    return body


def identity_provider_field(form: FormValues, path: str) -> str | None:
    """The field of a path in the body, or None."""
    first, _, rest = path.partition(".")
    if first != "rules":
        return first if first in _FIELDS else None
    at, _, name = rest.partition(".")
    rows = form.rows(PREFIX)
    if not at.isdigit() or int(at) >= len(rows):
        return None
    return f"{PREFIX}.{rows[int(at)]}.{name if name in _RULE else _RULE[0]}"


def _rule(form: FormValues, row: str) -> JsonObject:
    rule: JsonObject = {name: form[f"{row}.{name}"].strip() for name in ("claim", "value", "role")}
    if organization := form[f"{row}.organization_id"].strip():
        rule["organization_id"] = organization
    if custom_role := form[f"{row}.custom_role"].strip():
        rule |= {"role": "viewer", "custom_role": custom_role}
    return rule
