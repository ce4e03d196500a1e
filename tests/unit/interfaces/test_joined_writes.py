"""Writes that leave together at the end of a step of the event loop."""

import asyncio

from pytest_mock import MockerFixture

from interfaces.joined_writes import JoinedWrites


class Wire(asyncio.Transport):
    """Remembers what left, and when it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.left.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


async def test_head_and_body_leave_together() -> None:
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    joined.write(b"head")
    joined.write(b"body")
    assert wire.left == []
    await asyncio.sleep(0)
    assert wire.left == [b"headbody"]

    joined.write(b"next")
    await asyncio.sleep(0)
    assert wire.left == [b"headbody", b"next"]


async def test_what_was_written_leaves_before_the_connection_is_closed() -> None:
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    joined.write(b"last words")
    joined.close()
    assert (wire.left, wire.is_closed) == ([b"last words"], True)
    await asyncio.sleep(0)
    assert wire.left == [b"last words"]


async def test_large_parts_do_not_wait_for_the_end_of_the_step() -> None:
    wire = Wire()
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    for _ in range(3):
        joined.write(b"x" * 40_000)
    assert [len(data) for data in wire.left] == [80_000]
    await asyncio.sleep(0)
    assert sum(map(len, wire.left)) == 120_000


async def test_nothing_is_written_to_a_connection_that_is_gone(mocker: MockerFixture) -> None:
    wire = mocker.create_autospec(asyncio.Transport, instance=True)
    wire.is_closing.return_value = True
    joined = JoinedWrites(wire, asyncio.get_running_loop())
    joined.write(b"too late")
    await asyncio.sleep(0)
    wire.write.assert_not_called()
