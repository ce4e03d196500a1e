"""Requests of every shape that the OpenAPI document allows, and of many that it does not, as every
role: whatever is sent, the answer is one that the document names, and never a fault of ours."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok

from domain.identity.role import Role
from tests.builders import ORG
from tests.composition import MODEL
from tests.integration.http.service import PLATFORM, Act, Harness, Service, token_of

EXAMPLES = 10
"""Of each operation, over all roles."""
TOKENS = {**{role.value: token_of(role) for role in Role}, "platform": PLATFORM, "nobody": None}

PROFILE = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class Attempt:
    """The service in a loop of its own, with one of each thing that a path can name."""

    def __init__(self, runner: asyncio.Runner, service: Service, known: Mapping[str, str]) -> None:
        self._runner = runner
        self._service = service
        self.known = known

    def send(self, case: "Case[Any]", token: str | None, *, aim: bool) -> tuple[int, str, bytes]:
        """Status, media type and body. `aim` puts names that exist into the path."""
        if aim:
            case.path_parameters = {**(case.path_parameters or {}), **self._aimed(case)}
        request: dict[str, Any] = dict(case.as_transport_kwargs(base_url="http://testserver.local"))
        request.pop("cookies", None)
        # What is neither a form nor JSON is sent as it is; whatever was made for it that is not
        # text is nothing to send.
        if "data" in request and not isinstance(request["data"], Mapping):
            raw = request.pop("data")
            request["content"] = raw if isinstance(raw, bytes | str) else repr(raw)
        headers = {name: value for name, value in request.pop("headers", {}).items() if name.lower() != "authorization"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self._runner.run(self._exchange(request, headers))

    async def _exchange(self, request: dict[str, Any], headers: dict[str, str]) -> tuple[int, str, bytes]:
        async with asyncio.timeout(60):
            answer = await self._service.client.request(**request, headers=headers)
            return answer.status_code, answer.headers.get("content-type", ""), answer.content

    def _aimed(self, case: "Case[Any]") -> dict[str, str]:
        names = case.path_parameters or {}
        return {name: self.known[name] for name in names if name in self.known}


@pytest.fixture(scope="module")
def any_harness() -> Harness:
    return Harness()


@pytest.fixture
def attempt(any_harness: Harness) -> Iterator[Attempt]:
    with asyncio.Runner() as runner:
        serving = any_harness.service()
        service = runner.run(serving.__aenter__())
        yield Attempt(runner, service, runner.run(one_of_each(service)))
        runner.run(serving.__aexit__(None, None, None))


async def one_of_each(service: Service) -> dict[str, str]:
    """What paths can name, by the name of the parameter; the run waits for its client."""
    await service.call("POST", "/v1/mcp-servers", json={"slug": "files", "kind": "custom", "command": "server"})
    await service.call("POST", "/v1/mcp-servers/files/refresh")
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    await service.call("POST", "/v1/secrets", json={"name": "KNOWN", "value": "a value"})
    provider = {"name": "known", "kind": "openai", "api_key": "sk-nobody-sees"}
    await service.call("POST", "/v1/model-providers", json=provider)
    service.worker.act = Act.ASK
    announced = {"agent": "guide", "input": "hello", "webhook": "https://hooks.example.com/"}
    run = (await service.call("POST", "/v1/runs", json=announced)).json()
    deliveries = await service.call("GET", f"/v1/runs/{run['id']}/webhook-deliveries")
    service.worker.act = Act.FINISH
    return {
        "agent": "guide",
        "server": "files",
        "tool": "echo",
        "thread_id": (await service.call("POST", "/v1/threads")).json()["id"],
        "run_id": run["id"],
        "delivery_id": deliveries.json()["data"][0]["id"],
        "secret": "KNOWN",
        "provider": "known",
        "organization_id": ORG,
    }


def document() -> dict[str, Any]:
    async def read() -> dict[str, Any]:
        async with Harness().service() as service:
            answer = await service.client.get("/schema/openapi.json")
            given: dict[str, Any] = answer.json()
            return given

    return asyncio.run(read())


OPERATIONS = {
    result.ok().label: result.ok()
    for result in schemathesis.openapi.from_dict(document()).get_all_operations()
    if isinstance(result, Ok)
}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("label", sorted(OPERATIONS))
def test_every_answer_to_any_request_is_a_documented_one(attempt: Attempt, label: str) -> None:
    operation = OPERATIONS[label]
    documented = set(operation.definition.raw["responses"])
    requests = st.one_of(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
    )

    @PROFILE
    @given(case=requests, role=st.sampled_from(sorted(TOKENS)), aim=st.booleans())
    def check(case: "Case[Any]", role: str, aim: bool) -> None:
        status, media_type, body = attempt.send(case, TOKENS[role], aim=aim)
        assert status < 500, (role, status, body)
        assert str(status) in documented, (role, status, body)
        # Browsers that come back from an authorization server are answered with a page.
        if status >= 400 and operation.path != "/oauth/callback":
            assert media_type.startswith("application/problem+json"), (role, status, media_type)

    check()
