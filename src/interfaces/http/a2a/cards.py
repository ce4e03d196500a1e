"""Agent cards: how an agent is reached, and for callers with a key what it is."""

from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from litestar.response.base import ASGIResponse

from application.a2a.ports import CardSigner
from application.agents.queries import GetAgent
from application.mcp.oauth_client import PublicAddress, public_url
from domain.agents.agent import Agent
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.threads.attachments import IMAGE_TYPES, PDF
from interfaces.http.a2a.parts import INPUT_MODES
from interfaces.http.bodies import MAX_NAME

PATH = "/a2a/v1"
VERSION = "1.0"
_MAX_AGE_S = 60
_OUTPUT_MODES = ("text/plain", "application/json", *sorted(IMAGE_TYPES), PDF, "audio/wav", "audio/mpeg")
"""Those of answers, and of files that tools return."""


class AgentCards:
    """Rules:
    - The public card is the same for every name: it tells how to call an agent, and not which
      agents there are.
    - The card for a key has the agent's description and version. An agent that the key's
      organization does not have is not found.
    - With a key of the service, cards are signed; the public keys are below the same address.
    - Addresses are those of the public URL, whatever host a request names.
    """

    def __init__(self, *, get_agent: GetAgent, card_signer: CardSigner, public_address: PublicAddress) -> None:
        self._get_agent = get_agent
        self._signer = card_signer
        self._address = public_address

    async def public(self, name: str) -> JsonObject:
        """Raises NOT_FOUND for a name that is too long."""
        if len(name) > MAX_NAME:
            raise not_found("agent", name)
        return await self._card(
            name, name, f"The agent {name}. Callers with a key read more in its extended card.", "1"
        )

    async def extended(self, principal: Principal, name: str) -> JsonObject:
        """Raises NOT_FOUND."""
        agent = await self._get_agent.execute(principal, name)
        return await self._card(name, agent.config.name, _description(agent), str(agent.version))

    async def keys(self) -> JsonObject:
        """The keys that sign cards, as a JSON Web Key Set."""
        return await self._signer.keys()

    async def _card(self, path: str, name: str, description: str, version: str) -> JsonObject:
        url = public_url(self._address, f"{PATH}/{quote(path, safe='')}")
        interfaces: list[JsonValue] = [
            {"url": url, "protocolBinding": binding, "protocolVersion": VERSION} for binding in ("JSONRPC", "HTTP+JSON")
        ]
        skill: JsonObject = {"id": name, "name": name, "description": description, "tags": ["agent"]}
        card: JsonObject = {
            "name": name,
            "description": description,
            "version": version,
            "supportedInterfaces": interfaces,
            "capabilities": {"streaming": True, "pushNotifications": True, "extendedAgentCard": True},
            "securitySchemes": {
                "key": {
                    "httpAuthSecurityScheme": {
                        "scheme": "Bearer",
                        "description": "An API key, or a token of the organization's identity provider.",
                    }
                }
            },
            # The roles of a scheme without scopes (OpenAPI 3.1). Empty values would have two
            # canonical forms.
            "securityRequirements": [{"schemes": {"key": {"list": [Role.RUNNER.value]}}}],
            "defaultInputModes": list(INPUT_MODES),
            "defaultOutputModes": list(_OUTPUT_MODES),
            "skills": [skill],
        }
        return await self._signer.signed(card, f"{url}/.well-known/jwks.json")


def card_response(card: JsonObject, headers: Mapping[str, str], *, is_public: bool) -> ASGIResponse:
    """A card with the headers of caches; nothing but them for a client that has it."""
    tag = _tag(card)
    scope = "public" if is_public else "private"
    sent = {"ETag": tag, "Cache-Control": f"{scope}, max-age={_MAX_AGE_S}", "Vary": "Authorization"}
    if headers.get("if-none-match") == tag:
        return ASGIResponse(status_code=304, headers=sent)
    return ASGIResponse(body=msgspec.json.encode(card), headers=sent, media_type="application/json")


def _tag(card: JsonObject) -> str:
    """Weak, and without the signatures' values: each replica signs, and a signature by ES256 is
    random."""
    signatures = card.get("signatures")
    signed = signatures if isinstance(signatures, list) else []
    keys: list[JsonValue] = [each.get("protected") for each in signed if isinstance(each, dict)]
    return f'W/"{canonical_digest({**card, "signatures": keys})}"'


def _description(agent: Agent) -> str:
    return agent.config.description or f"The agent {agent.config.name}."
