"""What the service and its forked children say to each other over a socket: lengths, a JSON head, bytes.

A job: `!IQ` (length of head, length of data), head, data. An answer: `!I` (length of head), head, and what the head announces.
"""

import json
import struct

REQUEST = struct.Struct("!IQ")
ANSWER = struct.Struct("!I")
READY = b"r"
"""What the forking process says when it takes jobs."""
MAX_HEAD_BYTES = 4 * 1024 * 1024
"""The largest head of an answer."""


def encoded_head(content: dict[str, object]) -> bytes:
    """The beginning of an answer."""
    head = json.dumps(content).encode()
    return ANSWER.pack(len(head)) + head
