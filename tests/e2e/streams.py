"""A client of event streams that can hang up in the middle, as lost connections do."""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

from tests.e2e.service import Json, Service

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@contextmanager
def stream(
    service: Service, method: str, path: str, *, body: object = None, after: int | None = None
) -> Iterator[Iterator[Json]]:
    """The events of a stream as they come, each `{id, event, data}`. Leaving the block resets the
    connection (TCP RST), without a word."""
    address = urlsplit(service.url)
    connection = HTTPConnection(str(address.hostname), address.port, timeout=120)
    headers = {**service.headers, **({} if after is None else {"Last-Event-ID": str(after)})}
    if body is not None:
        headers["Content-Type"] = "application/json"
    connection.request(method, f"/v1{path}", None if body is None else json.dumps(body), headers)
    assert isinstance(connection.sock, socket.socket)
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    response = connection.getresponse()
    try:
        assert response.status == 200, response.read()
        assert response.getheader("Content-Type", "").startswith("text/event-stream")
        yield _frames(line.decode().rstrip("\n") for line in response)
    finally:
        response.close()
        connection.close()


def _frames(lines: Iterator[str]) -> Iterator[Json]:
    frame: Json = {"id": None}
    for line in lines:
        name, _, value = line.partition(": ")
        if not line and "event" in frame:
            yield frame
            frame = {"id": None}
        elif name == "data":
            frame["data"] = json.loads(value)
        elif name == "id":
            frame["id"] = int(value)
        elif name == "event":
            frame["event"] = value
