"""An identity provider that answers the command line as it is told."""

import base64
import json
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import httpx

from domain.json_value import JsonObject
from interfaces.cli.sign_in.provider import CliProvider, Endpoints, ProviderClient

ISSUER = "https://login.example.com"
COMPANY = CliProvider(name="company", issuer=ISSUER, client_id="cli", scopes=("openid", "email"))
ENDPOINTS = Endpoints(
    issuer=ISSUER,
    authorization_endpoint=f"{ISSUER}/auth",
    token_endpoint=f"{ISSUER}/token",
    device_authorization_endpoint=f"{ISSUER}/device",
    revocation_endpoint=f"{ISSUER}/revoke",
)


def an_id_token(expires_at: float = 2_000.0, name: str = "ann") -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires_at, "sub": name}).encode()).rstrip(b"=").decode()
    return f"e30.{claims}.c2ln"


def tokens(**changes: object) -> httpx.Response:
    return httpx.Response(200, json={"id_token": an_id_token(), "refresh_token": "second", **changes})


def error(code: str) -> httpx.Response:
    return httpx.Response(400, json={"error": code})


@dataclass
class Answers:
    """Answers by path, in this order; `sent` has the forms that came."""

    by_path: dict[str, list[httpx.Response]]
    sent: list[JsonObject] = field(default_factory=list)

    def client(self) -> ProviderClient:
        return ProviderClient(transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.sent.append({name: values[0] for name, values in parse_qs(request.content.decode()).items()})
        return self.by_path[request.url.path].pop(0)
