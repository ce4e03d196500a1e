"""The form of an MCP server: fields by kind, and the API's body from the fields."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.json_value import JsonValue
from domain.mcp.auth import secrets_of
from domain.mcp.server import McpServerConfig, McpServerKind
from domain.rate_limit import RateLimit
from domain.secrets.secret import SecretRef, SecretValue
from interfaces.console.json_text import JsonTextError, json_of
from interfaces.http.mcp_servers.auth_views import auth_view

KINDS: Mapping[McpServerKind, str] = {
    McpServerKind.NPM: "npm package",
    McpServerKind.PYTHON: "Python package",
    McpServerKind.OCI: "Container image",
    McpServerKind.CUSTOM: "Command",
    McpServerKind.HTTP: "Remote (HTTP)",
    McpServerKind.SSE: "Remote (SSE, older)",
    McpServerKind.A2A: "Remote agent (A2A)",
}
AUTH_TYPES: Mapping[str, str] = {
    "": "none, or in headers",
    "bearer": "Bearer token",
    "api_key": "API key in a header",
    "oauth_client_credentials": "OAuth: client credentials",
    "oauth_authorization_code": "OAuth: consent of a person",
    "oauth_token_exchange": "OAuth: on behalf of each person (token exchange)",
    "oauth_id_jag": "OAuth: managed by the identity provider (ID-JAG)",
}
ENTRY_GROUPS: Mapping[str, str] = {"env": "Environment", "headers": "Headers"}
MAX_ENTRIES = 200

_PACKAGE = ("package", "version", "command")
_TEXTS: Mapping[McpServerKind, tuple[str, ...]] = {
    McpServerKind.NPM: _PACKAGE,
    McpServerKind.PYTHON: _PACKAGE,
    McpServerKind.OCI: ("package", "version"),
    McpServerKind.CUSTOM: ("command", "path"),
    McpServerKind.HTTP: ("url",),
    McpServerKind.SSE: ("url",),
    McpServerKind.A2A: ("url",),
}
CHOICES: Mapping[str, type[StrEnum]] = {
    field.name: field.type
    for field in fields(McpServerConfig)
    if isinstance(field.type, type) and issubclass(field.type, StrEnum) and field.name != "kind"
}
"""Fields with fixed choices. Fields that the template does not show are not sent."""
_NUMBERS = tuple(field.name for field in fields(McpServerConfig) if field.type in (int, float))
_RATE = tuple(field.name for field in fields(RateLimit))
_AUTH_TEXTS: Mapping[str, tuple[str, ...]] = {
    "bearer": (),
    "api_key": ("header",),
    "oauth_client_credentials": ("client_id", "key_id", "issuer"),
    "oauth_authorization_code": ("client_id", "issuer"),
    "oauth_token_exchange": ("client_id", "key_id", "issuer", "audience", "resource", "subject_token"),
    "oauth_id_jag": ("client_id", "key_id", "issuer"),
}
_AUTH_SECRETS: Mapping[str, tuple[str, ...]] = {
    "bearer": ("token",),
    "api_key": ("value",),
    "oauth_client_credentials": ("client_secret", "private_key"),
    "oauth_authorization_code": ("client_secret",),
    "oauth_token_exchange": ("client_secret", "private_key"),
    "oauth_id_jag": ("client_secret", "private_key"),
}
_ENTRY = re.compile(r"(env|headers)-(\d{1,4})-name")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledIn:
    """The entered form. `stored` is the server being changed: empty secret fields keep its
    values."""

    form: Mapping[str, str]
    kind: McpServerKind
    stored: McpServerConfig | None = None

    def body(self) -> dict[str, object]:
        """The API's body: complete for a new server, changeable fields for a change. Raises
        INVALID `mcp_server_invalid` for ambiguous entries."""
        body: dict[str, object] = {"slug": self._text("slug") or ""}
        for name in _TEXTS[self.kind]:
            self._put(body, name, self._text(name))
        self._put(body, "registry_entry", self._text("registry_entry"))
        self._put(body, "team", self._text("team"))
        for name in CHOICES:
            if text := self._text(name):
                body[name] = text
        for name in _NUMBERS:
            if text := self._text(name):
                body[name] = _number(text)
        rate = {name: _number(text) for name in _RATE if (text := self._text(f"rate_limit.{name}"))}
        self._put(body, "rate_limit", rate or None)
        self._put(body, "tools", [line.strip() for line in self._lines("tools")] or None)
        if "declared_tools" in self.form:
            body["declared_tools"] = self._declared()
        body["trusted"] = "trusted" in self.form
        body["enabled"] = "enabled" in self.form
        if self.kind.is_remote:
            body["headers"] = self._entries("headers")
            self._put(body, "auth", self._auth())
            self._put(body, "tls", self._tls())
        else:
            body["args"] = self._lines("args")
            body["network_hosts"] = [line.strip() for line in self._lines("network_hosts")]
            body["env"] = self._entries("env")
        if self.stored is None:
            body["kind"] = self.kind.value
        return body

    def _put(self, body: dict[str, object], name: str, value: object) -> None:
        """A new server omits empty fields; a change clears them."""
        if value is not None or self.stored is not None:
            body[name] = value

    def _lines(self, name: str) -> list[str]:
        return [line.rstrip("\r") for line in self.form.get(name, "").split("\n") if line.strip()]

    def _text(self, name: str) -> str | None:
        return self.form.get(name, "").strip() or None

    def _declared(self) -> JsonValue:
        text = self._text("declared_tools")
        try:
            return [] if text is None else json_of(text)
        except JsonTextError as error:
            wrong = Violation(path="declared_tools", message=str(error))
            raise invalid("mcp_server_invalid", "The MCP server is not valid.", wrong) from None

    def _auth(self) -> dict[str, object] | None:
        kind = self.form.get("auth.type", "")
        if not kind:
            return None
        auth: dict[str, object] = {"type": kind}
        for name in _AUTH_TEXTS.get(kind, ()):
            if text := self._text(f"auth.{name}"):
                auth[name] = text
        if scopes := self.form.get("auth.scopes", "").split():
            auth["scopes"] = scopes
        names = _AUTH_SECRETS.get(kind, ())
        entered = {name: self._secret(f"auth.{name}", None) for name in names}
        # An entered secret takes the place of all that are stored: a secret that of a key, and the
        # other way round.
        if not any(entered.values()):
            entered = {name: _unchanged(self._stored_secret(kind, name)) for name in names}
        auth |= {name: secret for name, secret in entered.items() if secret is not None}
        return auth

    def _tls(self) -> dict[str, object] | None:
        tls: dict[str, object] = {name: text for name in ("certificate", "ca") if (text := self._text(f"tls.{name}"))}
        stored = None if self.stored is None or self.stored.tls is None else self.stored.tls.private_key
        key = self._secret("tls.private_key", stored if "certificate" in tls else None)
        return tls | ({} if key is None else {"private_key": key}) or None

    def _stored_secret(self, kind: str, name: str) -> SecretValue | None:
        auth = None if self.stored is None else self.stored.auth
        if auth is None or (auth_view(auth) or {}).get("type") != kind:
            return None
        # A client secret without its client id is useless: removing the id removes the secret.
        alone = kind in ("oauth_authorization_code", "oauth_token_exchange") and self._text("auth.client_id") is None
        return None if alone else secrets_of(auth).get(name)

    def _secret(self, name: str, stored: SecretValue | None) -> object:
        if reference := self._text(f"{name}.secret"):
            return {"secret": reference}
        if value := self.form.get(name):
            return value
        return _unchanged(stored)

    def _entries(self, group: str) -> dict[str, object]:
        stored = {} if self.stored is None else getattr(self.stored, group)
        entries: dict[str, object] = {}
        wrong = []
        for row, name in self._rows(group):
            value = self._secret(f"{row}-value", None)
            if not name:
                if value is not None:
                    wrong.append(Violation(path=group, message="a value has no name"))
            elif name in entries:
                wrong.append(Violation(path=group, message=f"{name} is given twice"))
            elif f"{row}-remove" in self.form:
                entries[name] = None
            elif value is not None or name not in stored:
                entries[name] = "" if value is None else value
        if wrong:
            raise invalid("mcp_server_invalid", "The MCP server is not valid.", *wrong)
        return entries

    def _rows(self, group: str) -> Iterator[tuple[str, str]]:
        numbers = sorted(int(found[2]) for name in self.form if (found := _ENTRY.fullmatch(name)) and found[1] == group)
        return ((f"{group}-{number}", self.form[f"{group}-{number}-name"].strip()) for number in numbers)


def _unchanged(stored: SecretValue | None) -> object:
    return {"secret": stored.name} if isinstance(stored, SecretRef) else stored


def _number(text: str) -> object:
    """A number, or the text, which the API's validation then rejects."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
