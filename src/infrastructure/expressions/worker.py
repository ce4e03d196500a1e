"""Evaluates expensive JMESPath expressions in child processes that are killed at their deadline."""

import asyncio
import json
import socket
from dataclasses import dataclass
from typing import cast

from domain.json_value import JsonValue
from infrastructure.expressions.bounded_jmespath import EvaluationError, Fault
from infrastructure.forking.fork_server import ChildLostError, ForkedChildren, received, received_head
from infrastructure.forking.wire import REQUEST
from infrastructure.runtime.json_text import decode, encode

_PROCESS = "infrastructure.expressions.process"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationLimits:
    """Limits of one evaluation. `timeout_s` excludes the wait for other evaluations.
    `max_memory_bytes` is the child's memory on top of the libraries. `max_bytes` bounds the result
    as JSON."""

    timeout_s: float = 5.0
    max_memory_bytes: int = 1024 * 1024 * 1024
    max_bytes: int = 16 * 1024 * 1024


class ExpressionWorker:
    """At most `max_concurrent` evaluations at a time; others wait."""

    def __init__(
        self, *, limits: EvaluationLimits | None = None, max_concurrent: int = 2, idle_timeout_s: float = 120.0
    ) -> None:
        self._limits = limits or EvaluationLimits()
        self._children = ForkedChildren(_PROCESS, max_concurrent=max_concurrent, idle_timeout_s=idle_timeout_s)

    async def evaluate(self, expression: str, value: JsonValue) -> JsonValue:
        """The value of the expression. Raises EvaluationError, TimeoutError,
        ForkServerUnavailableError. Cancellation kills the child."""
        # In threads: encoding and decoding a large value would block the event loop.
        data = await asyncio.to_thread(_encoded, value)
        try:
            found = await self._children.run(lambda connection: self._answer(connection, expression, data))
        except ChildLostError:
            raise EvaluationError(Fault.TOO_MUCH) from None
        return await asyncio.to_thread(_decoded, found)

    async def close(self) -> None:
        await self._children.close()

    async def _answer(self, connection: socket.socket, expression: str, data: bytes) -> bytes:
        head = json.dumps(
            {
                "expression": expression,
                "max_memory_bytes": self._limits.max_memory_bytes,
                "cpu_s": int(self._limits.timeout_s) + 2,  # a safety net: the deadline here comes first
                "max_bytes": self._limits.max_bytes,
            }
        ).encode()
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._limits.timeout_s):
            await loop.sock_sendall(connection, REQUEST.pack(len(head), len(data)) + head)
            await loop.sock_sendall(connection, data)
            answer = await received_head(connection)
            if "fault" in answer:
                raise EvaluationError(Fault(str(answer["fault"])))
            size = cast(int, answer["size"])
            if size > self._limits.max_bytes:
                raise EOFError
            return await received(connection, size)


def _encoded(value: JsonValue) -> bytes:
    return encode(value).encode()


def _decoded(data: bytes) -> JsonValue:
    return decode(data.decode())
