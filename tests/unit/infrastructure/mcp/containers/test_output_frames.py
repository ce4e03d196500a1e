"""The framing of an attached container's outputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.mcp.containers.output_frames import OutputFrames

FRAMES = st.lists(st.tuples(st.sampled_from([0, 1, 2, 3]), st.binary(max_size=40)), max_size=8)


def framed(kind: int, data: bytes) -> bytes:
    return bytes([kind, 0, 0, 0]) + len(data).to_bytes(4) + data


@pytest.mark.requirement("S1")
@given(frames=FRAMES, size=st.integers(1, 60))
def test_outputs_are_told_apart_however_the_stream_is_cut(frames: list[tuple[int, bytes]], size: int) -> None:
    outputs: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
    parts = OutputFrames(outputs[1].extend, outputs[2].extend)
    stream = b"".join(framed(kind, data) for kind, data in frames)
    for at in range(0, len(stream), size):
        parts.feed(stream[at : at + size])
    for kind, output in outputs.items():
        assert bytes(output) == b"".join(data for each, data in frames if each == kind)


@pytest.mark.requirement("S3")
def test_a_frame_is_passed_on_before_it_is_complete() -> None:
    output = bytearray()
    parts = OutputFrames(output.extend, output.extend)
    parts.feed(bytes([1, 0, 0, 0]) + (2**32 - 1).to_bytes(4) + b"first")
    assert output == b"first"
