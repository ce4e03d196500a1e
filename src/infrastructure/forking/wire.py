"""The socket protocol between the service and its forked children: lengths, a JSON head, bytes.

A job: `!IQ` (length of head, length of data), head, data. An answer: `!I` (length of head), head,
and the data that the head describes.
"""

import json
import struct

REQUEST = struct.Struct("!IQ")
ANSWER = struct.Struct("!I")
READY = b"r"
"""The forking process sends it when it accepts jobs."""
MAX_HEAD_BYTES = 4 * 1024 * 1024
"""The largest head of an answer."""


def encoded_head(content: dict[str, object]) -> bytes:
    head = json.dumps(content).encode()
    return ANSWER.pack(len(head)) + head
