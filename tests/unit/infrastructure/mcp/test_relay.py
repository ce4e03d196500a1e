"""What comes for a listener that is slower than whoever brings it."""

import asyncio

from infrastructure.mcp.relay import MAX_WAITING, Relay


async def test_of_what_a_slow_listener_has_waiting_the_oldest_is_dropped() -> None:
    heard: list[int] = []
    may_go_on = asyncio.Event()

    async def tell(news: int) -> None:
        await may_go_on.wait()
        heard.append(news)

    relay = Relay(tell)
    relay.put(0)
    await asyncio.sleep(0)
    for number in range(1, MAX_WAITING + 11):
        relay.put(number)
    may_go_on.set()
    await relay.finish(10.0)
    assert heard == [0, *range(11, MAX_WAITING + 11)]
