"""What the official conformance suite runs as the client under test where an enterprise manages the
authorization.

    python -m tests.e2e.clients.managed_client URL

The suite gives the client an ID token. Its identity provider has no page to sign in at and
publishes no keys, so that no browser can sign in there: this program stores the token as the end of
a sign-in does, and the service's MCP client does the rest.
"""

import asyncio
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import httpx

from application.mcp.authorization import PersonSignIn
from application.mcp.ports import ConnectionScope
from domain.mcp.auth import IdJagAuth
from domain.mcp.server import Credentials
from tests.builders import ORG, RUN, THREAD
from tests.integration.mcp.oauth_processes import ServiceProcesses
from tests.integration.mcp.parts import PATIENCE_S, a_call
from tests.people_builders import PROVIDER, USER, a_provider, a_user

CONTEXT = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])


async def authorization_server_of(url: str) -> str:
    """What an admin writes down for the server: the authorization server that it names."""
    parts = urlsplit(url)
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        found = await client.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}")
    return str(found.raise_for_status().json()["authorization_servers"][0])


async def main(url: str) -> None:
    """A person signs in, and their run lists and calls the tools of the server."""
    world = ServiceProcesses()
    world.state.users[USER] = a_user()
    world.state.identity_providers[PROVIDER] = a_provider(
        issuer=CONTEXT["idp_issuer"], client_id=CONTEXT["idp_client_id"]
    )
    auth = IdJagAuth(
        client_id=CONTEXT["client_id"],
        client_secret=CONTEXT["client_secret"],
        issuer=await authorization_server_of(url),
    )
    server = world.registered_at(url, auth, credentials=Credentials.PERSON)
    async with world.process() as connections:
        until = datetime.now(UTC) + timedelta(hours=1)
        sign_in = PersonSignIn(
            provider_id=PROVIDER,
            issuer=CONTEXT["idp_issuer"],
            id_token=CONTEXT["idp_id_token"],
            id_token_expires_at=until,
        )
        assert await world.oauth.authorizer.signed_in(server.acting_for(USER), sign_in)
        scope = ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN, person_id=USER)
        catalog = await connections.discover(server, scope, timeout_s=PATIENCE_S)
        for tool in catalog.tools:
            reply = await connections.call_tool(server, scope, a_call(tool.name))
            sys.stderr.write(f"{tool.name}: {reply}\n")


asyncio.run(main(sys.argv[1]))
