"""Large requests at once, for a service with little memory."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.processes import until
from tests.e2e.service import Service, serving

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Bodies, and transcripts, may have 2 MiB together."""
    with serving(tmp_path_factory.mktemp("memory") / "home", DRAGOMAN_MEMORY_BYTES=str(64 * MIB)) as running:
        running.agent("hello", "scripted:hello.yaml")
        yield running


def large(size: int) -> bytes:
    return json.dumps({"agent": "hello", "input": "x" * size}).encode()


def answer_to(service: Service, body: bytes) -> httpx.Response:
    headers = {**service.headers, "Content-Type": "application/json"}
    return httpx.post(f"{service.url}/v1/runs", content=body, headers=headers, timeout=60, trust_env=False)


def first(service: Service, body: bytes, status: int) -> httpx.Response:
    """The first answer with this status, when the request is repeated."""
    answers: list[httpx.Response] = []

    def answered() -> bool:
        answers.append(answer_to(service, body))
        return answers[-1].status_code == status

    until(answered)
    return answers[-1]


@pytest.mark.requirement("C6")
def test_a_large_request_is_refused_while_others_fill_the_memory_and_accepted_afterwards(service: Service) -> None:
    address, slow = urlsplit(service.url), large(8 * MIB)
    head = f"POST /v1/runs HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {service.key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(slow)}\r\n\r\n"
    with socket.create_connection((str(address.hostname), address.port or 0), timeout=60) as connection:
        connection.sendall(head.encode() + slow[: 7 * MIB])
        answer = first(service, large(3 * MIB // 2), 503)
        assert answer.json()["code"] == "too_much_in_progress"
        assert answer.headers["content-type"].startswith("application/problem+json")
        assert answer.headers["retry-after"] == "1"
        assert answer_to(service, large(1_000)).status_code == 202, "a small one is not counted"
    first(service, large(3 * MIB // 2), 202)


@pytest.mark.requirement("C6")
def test_runs_with_more_in_memory_than_there_is_room_for_wait_and_complete(service: Service) -> None:
    runs = [first(service, large(MIB), 202).json()["id"] for _ in range(8)]
    assert {service.wait(run)["run"]["status"] for run in runs} == {"completed"}
