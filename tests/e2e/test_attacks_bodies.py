"""Bodies whose JSON is much work to read: another client of a real service waits for none of
them."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.harm import unharmed
from tests.e2e.service import Service, serving

pytestmark = pytest.mark.timeout(400)

LARGE = 96 * 1024 * 1024
"""Memory that a body of ten megabytes may take, with its copies."""
RUN = b'{"agent":"hello","input":'
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"x":'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("bodies") / "home"
    with serving(home, DRAGOMAN_LOG_LEVEL="error") as running:
        running.agent("hello", "scripted:hello.yaml")
        yield running


def posted(service: Service, path: str, content: bytes, token: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token or service.key}", "Content-Type": "application/json"}
    return httpx.post(f"{service.url}{path}", content=content, headers=headers, timeout=120, trust_env=False)


MANY = {
    "numbers": b"[" + b"0," * 4_800_000 + b"0]",
    "lists": b"[" + b"[]," * 3_200_000 + b"0]",
    "texts": b"[" + b'"",' * 3_200_000 + b"0]",
    "escapes": b"[" + b'"\\"",' * 1_900_000 + b"0]",
    "objects": b"[" + b'{"a":1},' * 1_200_000 + b"0]",
    "an object": b"{" + b",".join(b'"%d":0' % number for number in range(800_000)) + b"}",
}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("values", MANY.values(), ids=MANY)
def test_a_body_of_millions_of_values_is_refused_before_it_is_decoded(service: Service, values: bytes) -> None:
    answer = unharmed(service, lambda: posted(service, "/v1/runs", RUN + values + b"}"), memory=LARGE)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_many_values")


@pytest.mark.requirement("C6", "F5")
def test_a_message_to_the_gateway_of_millions_of_values_is_refused_before_it_is_decoded(service: Service) -> None:
    token = service.call("POST", "/gateway-sessions", {"agent_id": "hello"})["token"]
    messages = [CALL + values + b"}}}" for values in MANY.values()]
    answers = unharmed(service, lambda: [posted(service, "/mcp", message, token) for message in messages], memory=LARGE)
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in answers] == [(413, -32600)] * len(MANY)


WRONG = {
    "unknown fields": ("/v1/agents", {f"field{number}": 1 for number in range(99_000)}),
    "unknown fields of an agent": (
        "/v1/agents",
        {"name": "x", "model": "scripted:hello.yaml", **{f"f{n}": n for n in range(99_000)}},
    ),
    "a long unknown field": ("/v1/agents", {"x" * 9_000_000: 1}),
    "wrong elements": ("/v1/runs", {"agent": "hello", "input": [1] * 99_000}),
    "wrong parts": ("/v1/runs", {"agent": "hello", "input": [{"type": "text", "txt": 1}] * 33_000}),
    "too many parts": ("/v1/runs", {"agent": "hello", "input": [{"type": "text", "text": "a"}] * 33_000}),
    "wrong names": ("/v1/runs", {"agent": "hello", "input": "x", "tool_allowlist": [1] * 99_000}),
}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(("path", "body"), WRONG.values(), ids=WRONG)
def test_a_body_with_many_faults_is_answered_with_few_and_their_number(
    service: Service, path: str, body: dict[str, object]
) -> None:
    answer = unharmed(service, lambda: posted(service, path, json.dumps(body).encode()), memory=LARGE)
    assert (answer.status_code, answer.json()["code"]) == (422, "body_invalid")
    assert 1 <= len(answer.json()["errors"]) <= 20
    assert len(answer.content) < 10_000
    total = re.search(r"It has (\d+) faults", answer.json()["detail"])
    assert total is None or int(total[1]) >= 66_000


HEAVY = {
    "a long text": "a" * 9_800_000,
    "a text that looks like JSON": "[,{" * 3_000_000,
    "a text of quotes": '"' * 4_800_000,
    "many parts": [{"type": "text", "text": "a" * 9_000}] * 1_000,
}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("given", HEAVY.values(), ids=HEAVY)
def test_a_large_input_that_is_in_order_holds_nobody_up(service: Service, given: object) -> None:
    body = json.dumps({"agent": "hello", "input": given}).encode()
    answer = unharmed(service, lambda: posted(service, "/v1/runs", body), memory=4 * LARGE)
    assert answer.status_code == 202
    service.wait(answer.json()["id"])  # so that its run takes no memory in another test


@pytest.mark.requirement("C6")
def test_nobody_signs_in_with_megabytes(service: Service) -> None:
    def attack() -> int:
        form = b"a=b&" * 2_000_000
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        sent = httpx.post(f"{service.url}/console/sign-in", content=form, headers=headers, timeout=120, trust_env=False)
        return sent.status_code

    assert unharmed(service, attack) == 413
