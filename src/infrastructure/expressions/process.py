"""The process that evaluates expensive JMESPath expressions, in a child for each.

Started as `python -I -m infrastructure.expressions.process FD`. Above: `worker.py`; below: the
forking process. The head of a job is `{"expression", "max_memory_bytes", "cpu_s", "max_bytes"}`,
its data is the value as JSON. The head of an answer is `{"size"}`, followed by that many bytes of
JSON, or `{"fault"}`.
"""

import json
import os
import socket
import sys

from domain.json_value import JsonValue
from infrastructure.expressions.bounded_jmespath import EvaluationError, Fault, compiled, evaluated
from infrastructure.forking import forking_process
from infrastructure.forking.wire import REQUEST, encoded_head
from infrastructure.runtime.json_text import decode, encode

_NICENESS = 5
"""The service has priority over the evaluation of one workflow."""


def serve(connection: socket.socket) -> None:
    """Evaluate one expression, in a confined process."""
    with connection.makefile("rb") as incoming:
        head_size, size = REQUEST.unpack(incoming.read(REQUEST.size))
        head = json.loads(incoming.read(head_size))
        os.nice(_NICENESS)
        forking_process.confine(max_memory_bytes=head["max_memory_bytes"], cpu_s=head["cpu_s"])
        data = incoming.read(size)
    try:
        found = _evaluated(head["expression"], data, head["max_bytes"])
    except EvaluationError as error:
        connection.sendall(encoded_head({"fault": error.fault}))
    except MemoryError:
        connection.sendall(encoded_head({"fault": Fault.TOO_MUCH}))
    else:
        connection.sendall(encoded_head({"size": len(found)}))
        connection.sendall(found)


def _evaluated(expression: str, data: bytes, max_bytes: int) -> bytes:
    value: JsonValue = decode(data.decode())
    found = encode(evaluated(compiled(expression), value)).encode()
    if len(found) > max_bytes:
        raise EvaluationError(Fault.TOO_MUCH)
    return found


def load() -> None:
    """Evaluate once, because libraries load parts of themselves late."""
    _evaluated("sort_by([?a > `0`], &a)[*].{b: to_string(a)} | length(@)", b'[{"a": 1}]', 10)
    decode(encode("\ud800"))


def main(arguments: list[str]) -> int:
    """Run until the service ends."""
    forking_process.run_forking(int(arguments[0]), load, serve)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
