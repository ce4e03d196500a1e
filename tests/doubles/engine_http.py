"""HTTP of the container engine's double: one request for each connection."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        if self.headers.get("content-type") != "application/json":
            raise Refused(400, "unsupported Content-Type header")
        try:
            return dict(json.loads(self.body))
        except ValueError as exc:
            raise Refused(400, "invalid JSON") from exc


async def read_request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    assert headers["host"], "a request without Host is not HTTP/1.1"
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    params = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    return Asked(method=method, path=unquote(parts.path), params=params, headers=headers, body=body)


def answer(writer: asyncio.StreamWriter, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
    data = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    kind = "text/plain" if isinstance(body, str) else "application/json"
    shown = {"Content-Type": kind, "Connection": "close", **(headers or {})}
    if status not in (204, 304):
        shown["Content-Length"] = str(len(data))
    writer.write(_head(status, shown) + data)


async def answer_lines(writer: asyncio.StreamWriter, lines: Sequence[Mapping[str, Any]]) -> None:
    """Objects as they come, in chunks that do not end where a line does."""
    head = {"Content-Type": "application/json", "Transfer-Encoding": "chunked", "Connection": "close"}
    writer.write(_head(200, head))
    data = b"".join(json.dumps(line).encode() + b"\r\n" for line in lines)
    for part in (data[:7], data[7:]):
        writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        await writer.drain()
    writer.write(b"0\r\n\r\n")


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()
