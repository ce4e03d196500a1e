"""What it costs a gateway call that a person makes it, beside the same call with the organization's
key: `python -m benchmarks.people`.

The person signs in by a token of an identity provider, is in a group, and the rule for the tool
names that group and days of the week. Sessions of both are called turn by turn, of one service.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks.calls import post_request, tool_call
from benchmarks.figures import Budget, held
from benchmarks.gateway import LIMITS, Figures, Target
from benchmarks.processes import counterpart
from benchmarks.raw_http import response, serve
from benchmarks.service import Service, running_service
from benchmarks.upstreams import MODERN

CALLS, WARM_UP, ROUNDS = 1_000, 1_000, 8
CONCURRENCIES = (1, 16)
ADDED_MS = 0.1
ABOUT = (
    "Calls of a person with the token of an identity provider, beside those with the organization's key: two sessions of one "
    "service, called turn by turn. The rule for the person's tool has a group and days of the week as its condition, that for the key none."
)
_ADDED_CPU = Budget(what="CPU that a person adds to a call through the gateway", limit=ADDED_MS, unit="ms")
_GROUP, _CLIENT = "finance", "bench"
_KEY_ID = "bench"
_EVERY_DAY = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@contextmanager
def identity_provider(key: ec.EllipticCurvePrivateKey) -> Iterator[str]:
    """An issuer with this key, which another thread serves; yields its URL. People bring their
    tokens: it has no sign-in."""
    documents: dict[str, object] = {}

    def answer(head: bytes, _body: bytes) -> bytes:
        return response(json.dumps(documents[head.split(b" ")[1].decode()]).encode())

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(serve(answer))
    issuer = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    documents["/.well-known/openid-configuration"] = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/keys",
    }
    public = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    documents["/keys"] = {"keys": [{**public, "kid": _KEY_ID, "use": "sig", "alg": "ES256"}]}
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def token_of(issuer: str, key: ec.EllipticCurvePrivateKey) -> str:
    """A token of the person, for an hour."""
    now = int(time.time())
    claims = {"iss": issuer, "aud": _CLIENT, "sub": "ida", "iat": now, "exp": now + 3600}
    return jwt.encode(claims, key, algorithm="ES256", headers={"kid": _KEY_ID})


def session_target(service: Service, agent: str, credential: str) -> Target:
    """Calls in a session that was opened with this credential."""
    request = Request(
        f"{service.url}/v1/gateway-sessions",
        data=json.dumps({"agent_id": agent}).encode(),
        headers={"Authorization": f"Bearer {credential}", "Content-Type": "application/json"},
    )
    with urlopen(request, timeout=60) as answer:
        token = json.load(answer)["token"]
    body, headers = tool_call("mcp__plain__echo", MODERN)
    headers["Authorization"] = f"Bearer {token}"
    return Target(port=service.port, request=post_request(service.port, "/mcp", body, headers), process=service)


def prepare(service: Service, issuer: str, port: int) -> None:
    """A server, an agent for the key, another one whose rule has a condition, and the identity
    provider."""
    service.post("/mcp-servers", {"slug": "plain", "kind": "http", "url": f"http://127.0.0.1:{port}/mcp"})
    condition = {"groups": [_GROUP], "days": _EVERY_DAY, "time_zone": "Europe/Berlin"}
    for name, when in (("key", None), ("person", condition)):
        allowed = {"decision": "allow", "allowed_params": ["text"]}
        policies = {
            "*": {"decision": "deny"},
            "mcp__plain__echo": allowed if when is None else {**allowed, "when": when},
        }
        service.post(
            "/agents",
            {"name": name, "model": "openai:bench", "mcp_servers": ["plain"], "tool_policies": policies},
        )
    rule = {"claim": "sub", "value": "*", "role": "operator"}
    service.post("/identity-providers", {"name": "company", "issuer": issuer, "client_id": _CLIENT, "rules": [rule]})


def in_group(service: Service, token: str) -> None:
    """Make the person a member of the group, by the id that the service gives them."""
    request = Request(f"{service.url}/v1/whoami", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request, timeout=60) as answer:
        person = json.load(answer)["id"]
    service.post("/groups", {"name": _GROUP, "members": [person]})


def called(target: Target) -> None:
    """One call, whose tool must answer: a refused one is an answer, too. Raises ValueError."""
    head, _, body = target.request.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    with urlopen(Request(f"http://127.0.0.1:{target.port}/mcp", data=body, headers=headers), timeout=30) as answer:
        result = json.load(answer)["result"]
    if result.get("isError"):
        raise ValueError(f"The call is refused: {result['content']}")


def report() -> list[str]:
    """The section of docs/performance.md."""
    key = ec.generate_private_key(ec.SECP256R1())
    with (
        counterpart("mcp-modern") as port,
        identity_provider(key) as issuer,
        running_service({"OPENAI_API_KEY": "bench", **LIMITS}) as service,
    ):
        prepare(service, issuer, port)
        token = token_of(issuer, key)
        in_group(service, token)
        targets = {
            "key": session_target(service, "key", service.key),
            "person": session_target(service, "person", token),
        }
        for target in targets.values():
            called(target)
            target.measured(WARM_UP, max(CONCURRENCIES))
        rounds = []
        for number in range(ROUNDS):
            order = list(targets) if number % 2 == 0 else list(reversed(targets))  # neither is always the first
            rounds.append({(who, each): targets[who].measured(CALLS, each) for each in CONCURRENCIES for who in order})
    whole = {case: Figures.summed([one[case] for one in rounds]) for case in rounds[0]}
    rows = ["| calls of | concurrency | calls/s | p50 ms | CPU ms per call |", "|---|---|---|---|---|"]
    for concurrency in CONCURRENCIES:
        for who, title in (("key", "the organization's key"), ("person", "a person, under a condition")):
            figures = whole[who, concurrency]
            done = figures.answered
            rows.append(
                f"| {title} | {concurrency} | {done.per_s:.0f} | {done.percentile_ms(50):.2f} | {figures.cpu_ms or 0:.3f} |"
            )
    added = (whole["person", 16].cpu_ms or 0) - (whole["key", 16].cpu_ms or 0)
    return [*rows, *held((_ADDED_CPU, added))]


if __name__ == "__main__":
    sys.stdout.write("\n".join([*report(), ""]))
