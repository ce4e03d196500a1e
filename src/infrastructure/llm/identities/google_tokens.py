"""Access tokens of Google Cloud: of a service account by its key, and of the machine.
https://developers.google.com/identity/protocols/oauth2/service-account"""

import base64
import time
from collections.abc import Callable
from urllib.parse import urlencode

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from application.models.ports import ModelError
from domain.model_providers.cloud import ServiceAccount
from infrastructure.identity.private_keys import UnusableKeyError, read_private_key
from infrastructure.llm.identities.access_tokens import AccessToken, TokenEndpoint

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_AUDIENCE = "https://oauth2.googleapis.com/token"
_VALID_S = 3600
_encode = msgspec.json.Encoder().encode


class ServiceAccountTokens:
    """Tokens for a signed assertion (RFC 7523)."""

    def __init__(
        self, account: ServiceAccount, endpoint: TokenEndpoint, *, now: Callable[[], float] = time.time
    ) -> None:
        self._account = account
        self._endpoint = endpoint
        self._now = now

    async def fetch(self) -> AccessToken:
        return await self._endpoint.exchanged(
            urlencode({"grant_type": _GRANT, "assertion": self._assertion()}).encode()
        )

    def _assertion(self) -> str:
        account, now = self._account, int(self._now())
        header = {"alg": "RS256", "typ": "JWT"} | ({} if account.key_id is None else {"kid": account.key_id})
        claims = {"iss": account.email, "scope": _SCOPE, "aud": _AUDIENCE, "iat": now, "exp": now + _VALID_S}
        signed = b".".join(_base64(_encode(part)) for part in (header, claims))
        signature = _private_key(account).sign(signed, padding.PKCS1v15(), hashes.SHA256())
        return (signed + b"." + _base64(signature)).decode()


class MachineTokens:
    """Tokens of the machine's identity, by its metadata server. Workload identity of GKE answers
    there too."""

    def __init__(self, endpoint: TokenEndpoint) -> None:
        self._endpoint = endpoint

    async def fetch(self) -> AccessToken:
        return await self._endpoint.of_machine({"metadata-flavor": "Google"})


def _private_key(account: ServiceAccount) -> rsa.RSAPrivateKey:
    try:
        key = read_private_key(account.private_key.encode())
    except UnusableKeyError:
        key = None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ModelError("model_auth", "The private key of the service account cannot be read.", retryable=False)
    return key


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
