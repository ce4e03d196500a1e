"""Servers of clouds that give out access tokens: Google's, Entra's, AWS's STS, and metadata servers."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from infrastructure.llm.identities.cloud_addresses import CloudAddresses
from tests.integration.llm.strict import converse

GOOGLE_TOKEN, MACHINE_TOKEN, ENTRA_TOKEN = "ya29.of-the-tests", "ya29.of-the-machine", "eyJ.of-entra"
CLIENT_SECRET = "a~secret~of~an~application"
EMAIL = "models@project-of-tests.iam.gserviceaccount.com"
ROLE_TOKEN = "tokenOfTheRoleOfTheTests=="


class CloudTokens:
    """Takes one service account, one application and the machine; counts what it was asked."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.asked: list[str] = []
        self.addresses = CloudAddresses()
        self.valid_s = 3600

    @property
    def service_account(self) -> str:
        """The JSON of the key. Its address of tokens is not one that may be used."""
        pem = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        account = {"type": "service_account", "client_email": EMAIL, "private_key": pem, "private_key_id": "k1"}
        return json.dumps({**account, "token_uri": "http://169.254.169.254/token"})

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["CloudTokens"]:
        app = web.Application()
        app.router.add_post("/google", self._google)
        app.router.add_get("/google-metadata", self._google_machine)
        app.router.add_post("/entra/{tenant}/oauth2/v2.0/token", self._entra)
        app.router.add_get("/azure-metadata", self._azure_machine)
        app.router.add_post("/sts/", self._role)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            base = f"http://{host}:{port}"
            self.addresses = CloudAddresses(
                google_token=f"{base}/google",
                google_metadata=f"{base}/google-metadata",
                entra=f"{base}/entra",
                azure_metadata=f"{base}/azure-metadata",
                sts=f"{base}/sts/",
            )
            yield self
        finally:
            await runner.cleanup()

    async def _google(self, request: web.Request) -> web.Response:
        self.asked.append("google")
        form = await request.post()
        head, claims, signature = str(form["assertion"]).split(".")
        self._key.public_key().verify(
            _plain(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
        said = json.loads(_plain(claims))
        if said["iss"] != EMAIL or said["aud"] != "https://oauth2.googleapis.com/token":
            return web.json_response({"error": "invalid_grant", "error_description": "Invalid JWT"}, status=400)
        return self._token(GOOGLE_TOKEN)

    async def _google_machine(self, request: web.Request) -> web.Response:
        self.asked.append("google-metadata")
        assert request.headers["metadata-flavor"] == "Google"
        return self._token(MACHINE_TOKEN)

    async def _entra(self, request: web.Request) -> web.Response:
        self.asked.append(f"entra {request.match_info['tenant']}")
        form = await request.post()
        secret = str(form["client_secret"])
        if secret != CLIENT_SECRET:
            said = f"AADSTS7000215: Invalid client secret provided: {secret}."
            return web.json_response({"error": "invalid_client", "error_description": said}, status=401)
        assert form["scope"] == "https://cognitiveservices.azure.com/.default"
        return self._token(ENTRA_TOKEN)

    async def _azure_machine(self, request: web.Request) -> web.Response:
        self.asked.append(f"azure-metadata {request.query.get('client_id')}")
        assert request.headers["metadata"] == "true"
        return web.json_response({"access_token": ENTRA_TOKEN, "expires_in": "86400"})

    async def _role(self, request: web.Request) -> web.Response:
        form = await request.post()
        self.asked.append(str(form["RoleArn"]))
        keys = f"<AccessKeyId>{converse.KEY_ID}</AccessKeyId><SecretAccessKey>{converse.SECRET}</SecretAccessKey>"
        keys += f"<SessionToken>{ROLE_TOKEN}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
        body = f"<AssumeRoleResult><Credentials>{keys}</Credentials></AssumeRoleResult>"
        space = 'xmlns="https://sts.amazonaws.com/doc/2011-06-15/"'
        return web.Response(text=f"<AssumeRoleResponse {space}>{body}</AssumeRoleResponse>", content_type="text/xml")

    def _token(self, value: str) -> web.Response:
        return web.json_response({"access_token": value, "expires_in": self.valid_s, "token_type": "Bearer"})


def _plain(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
