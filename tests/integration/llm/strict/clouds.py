"""Servers of clouds that give out access tokens: Google's, Entra's, AWS's STS, and metadata
servers."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from infrastructure.llm.identities.cloud_addresses import CloudAddresses, EntraWorkload
from tests.integration.llm.strict import converse

GOOGLE_TOKEN, MACHINE_TOKEN, ENTRA_TOKEN = "ya29.of-the-tests", "ya29.of-the-machine", "eyJ.of-entra"
CLIENT_SECRET = "a~secret~of~an~application"
FEDERATED_TOKEN = "eyJ.of-the-cluster.signed"
EMAIL = "models@project-of-tests.iam.gserviceaccount.com"
ROLE_TOKEN = "tokenOfTheRoleOfTheTests=="


class CloudTokens:
    """Takes one service account, one application and the machine; counts what it was asked."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.asked: list[str] = []
        self.addresses = CloudAddresses()
        self.valid_s = 3600
        self.federated_token = FEDERATED_TOKEN

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

    def know_workload(self, token_file: Path) -> None:
        """The machine is the workload `workload-1`; its cluster has written the token into the
        file."""
        token_file.write_text(f"{self.federated_token}\n", encoding="utf-8")
        workload = EntraWorkload(
            token_file=token_file, tenant_id="tenant-1", client_id="workload-1", authority=f"{self.addresses.entra}/"
        )
        self.addresses = replace(self.addresses, entra_workload=workload)

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
        assert form["grant_type"] == "client_credentials"
        if "client_assertion" in form:
            return self._entra_workload(form)
        secret = str(form["client_secret"])
        if secret != CLIENT_SECRET:
            said = f"AADSTS7000215: Invalid client secret provided: {secret}."
            return web.json_response({"error": "invalid_client", "error_description": said}, status=401)
        assert form["scope"] == "https://cognitiveservices.azure.com/.default"
        return self._token(ENTRA_TOKEN)

    def _entra_workload(self, form: Mapping[str, object]) -> web.Response:
        self.asked[-1] += f" for {form['client_id']}"
        assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        assert form["scope"] == "https://cognitiveservices.azure.com/.default"
        if form["client_assertion"] != self.federated_token:
            said = f"AADSTS700024: Client assertion is not within its valid time range: {form['client_assertion']}."
            return web.json_response({"error": "invalid_client", "error_description": said}, status=401)
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
