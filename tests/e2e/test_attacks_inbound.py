"""Clients without a key, and with one, that want a real service to run out of memory, time or
connections."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.harm import unharmed
from tests.e2e.service import Service, serving

MIB = 1024 * 1024
TIMEOUT_S = 2


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("inbound") / "home"
    settings = {"DRAGOMAN_REQUEST_TIMEOUT_S": str(TIMEOUT_S), "DRAGOMAN_LOG_LEVEL": "error"}
    with serving(home, **settings) as running:
        running.agent("hello", "scripted:hello.yaml")
        yield running
    assert running.log.read_text(encoding="utf-8") == "", "an attack is no error of the service"


def connected(service: Service, source: str = "127.0.0.1") -> socket.socket:
    address = urlsplit(service.url)
    return socket.create_connection((str(address.hostname), address.port or 0), timeout=60, source_address=(source, 0))


def begun(service: Service, data: bytes) -> socket.socket:
    """A connection on which this was sent before its deadline. If this process paused for longer,
    another one is opened."""
    while True:
        began = time.monotonic()
        connection = connected(service)
        connection.sendall(data)
        if time.monotonic() - began < TIMEOUT_S:
            return connection
        connection.close()


def answered(connection: socket.socket) -> tuple[int, bytes]:
    """Everything until the service closes the connection: the status of the answer (0 for none),
    and its body."""
    received = b""
    with suppress(ConnectionError):
        while part := connection.recv(65_536):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]) if head else 0, body


def sent(connection: socket.socket, first: bytes, again: bytes, most: int) -> int:
    """Send until the service closes the connection; how many bytes were taken."""
    taken = 0
    with suppress(ConnectionError):
        connection.sendall(first)
        while taken < most:
            connection.sendall(again)
            taken += len(again)
    return taken


HEAD = b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("first", "again"),
    [
        (HEAD + b"X-A: ", b"a" * 65_536),
        (HEAD, b"A: b\r\n" * 10_000),
        (b"GET /", b"a" * 65_536),
        (b"POST /mcp HTTP/1.1\r\nX-A: ", b"a" * 65_536),
        (b"GET /console HTTP/1.1\r\nCookie: ", b"a" * 65_536),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n" * 10_000),
    ],
    ids=["line", "lines", "url", "gateway", "console", "trailers"],
)
def test_a_head_without_end_is_cut_off(service: Service, first: bytes, again: bytes) -> None:
    def attack() -> int:
        with connected(service) as connection:
            return sent(connection, first, again, 400 * MIB)

    assert unharmed(service, attack) < 64 * MIB


def test_a_head_that_is_too_large_is_a_problem_with_a_code(service: Service) -> None:
    with begun(service, HEAD + b"A: b\r\n" * 200 + b"\r\n") as connection:
        status, body = answered(connection)
    assert (status, json.loads(body)["code"]) == (431, "head_too_large")


HALVES = (b"GET /health HTTP/1.1\r\nHo", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{", b"", b"\r\n")


@pytest.mark.requirement("C6")
def test_requests_that_are_never_finished_are_closed(service: Service) -> None:
    def attack() -> list[int]:
        with ExitStack() as stack:
            connections = [stack.enter_context(begun(service, HALVES[n % len(HALVES)])) for n in range(3_000)]
            return [answered(connection)[0] for connection in connections]

    statuses = unharmed(service, attack, memory=128 * MIB)
    assert [set(statuses[place :: len(HALVES)]) for place in range(len(HALVES))] == [{408}, {408}, {401}, {0}, {0}]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    "declared", [b"Content-Length: 9000000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"]
)
def test_a_body_that_never_comes_is_answered_408(service: Service, declared: bytes) -> None:
    key = f"Authorization: Bearer {service.key}\r\nContent-Type: application/json\r\n".encode()
    with begun(service, HEAD + key + declared) as connection:
        status, body = answered(connection)
    assert (status, json.loads(body)["code"]) == (408, "body_timeout")


@pytest.mark.requirement("C6", "G2")
@pytest.mark.parametrize("path", ["/v1/runs", "/v1/agents/hello", "/console/sign-in", "/mcp?agent=hello"])
def test_a_client_that_disconnects_amid_its_body_is_no_error_of_the_service(service: Service, path: str) -> None:
    method = "PATCH" if path.endswith("hello") and "agents" in path else "POST"
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {service.key}\r\n"
    with connected(service) as connection:
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{{".encode())
    assert service.call("GET", "/agents?limit=1")  # The fixture looks at the log.


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("path", "status"),
    [("/v1/runs", 401), ("/v1/threads/thr_x/sources", 401), ("/mcp", 401), ("/console/secrets", 303)],
)
@pytest.mark.parametrize("length", [b"Content-Length: 9000000\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_without_a_key_no_body_is_read(service: Service, path: str, status: int, length: bytes) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n%s\r\n"
    with begun(service, head % (path.encode(), length)) as connection:
        assert answered(connection)[0] == status


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("path", ["/health/live", "/schema/openapi.json"])
def test_requests_whose_responses_are_not_awaited_are_cut_off(service: Service, path: str) -> None:
    def attack() -> int:
        with connected(service) as connection:
            request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
            return sent(connection, b"", request * 3_000, 400 * MIB)

    assert unharmed(service, attack) < 64 * MIB


@pytest.mark.requirement("C6")
def test_one_address_does_not_take_all_connections(tmp_path: Path) -> None:
    settings = {"DRAGOMAN_MAX_CONNECTIONS_PER_ADDRESS": "40", "DRAGOMAN_SHARED_ADDRESSES": "127.0.0.1"}
    with serving(tmp_path / "home", **settings) as service, ExitStack() as stack:
        for source in ["127.0.0.2"] * 40 + ["127.0.0.1"] * 60:
            stack.enter_context(connected(service, source))
        with connected(service, "127.0.0.2") as one_more:
            status, body = answered(one_more)
        assert (status, json.loads(body)["code"]) == (503, "too_many_connections")
        with connected(service, "127.0.0.3") as other:
            other.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert answered(other)[0] == 200


@pytest.mark.requirement("C6")
def test_all_connections_together_are_bounded(tmp_path: Path) -> None:
    # None of the first is closed before the last is refused.
    settings = {"DRAGOMAN_MAX_CONNECTIONS": "50", "DRAGOMAN_REQUEST_TIMEOUT_S": "10"}
    with serving(tmp_path / "home", **settings) as service, ExitStack() as stack:
        connections = [stack.enter_context(connected(service)) for _ in range(60)]
        statuses = [answered(connection)[0] for connection in connections]
        assert statuses == [0] * 50 + [503] * 10
        service.call("GET", "/agents")
        assert "connections refused" in service.log.read_text()
