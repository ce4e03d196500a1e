"""How many event streams a key and an organization have open."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import cast

import pytest
from litestar.types import Message

from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId
from interfaces.http.sse import EventStream
from interfaces.http.stream_places import StreamPlaces
from tests.builders import KEY, ORG, OTHER_ORG
from tests.refusals import refused

pytestmark = pytest.mark.requirement("C6")

ONE = Principal(organization_id=ORG, key_id=KEY, role=Role.VIEWER)
ANOTHER = replace(ONE, key_id=ApiKeyId("key_another"))
THIRD = replace(ONE, key_id=ApiKeyId("key_third"))
ELSEWHERE = replace(ONE, organization_id=OTHER_ORG, key_id=ApiKeyId("key_elsewhere"))


def some_places() -> StreamPlaces:
    return StreamPlaces(per_key=2, per_organization=3)


def test_a_key_has_a_bounded_number_of_streams_and_so_has_its_organization() -> None:
    places = some_places()
    first = places.take(ONE)
    places.take(ONE)
    with refused("too_many_streams"):
        places.take(ONE)
    places.take(ANOTHER)
    with refused("too_many_streams"):
        places.take(THIRD)
    places.take(ELSEWHERE)
    first.leave()
    first.leave()
    places.take(THIRD)
    with refused("too_many_streams"):
        places.take(THIRD)


def test_the_refusal_says_when_to_try_again() -> None:
    places = StreamPlaces(per_key=0, per_organization=3)
    with pytest.raises(ServiceError) as raised:
        places.take(ONE)
    assert (raised.value.kind, raised.value.extra) == (ErrorKind.LIMIT, {"retry_after_s": "10"})


async def no_frames() -> AsyncGenerator[bytes, None]:
    frames: tuple[bytes, ...] = ()
    for frame in frames:
        yield frame


async def test_a_stream_leaves_its_place_when_it_has_ended() -> None:
    places, sent = StreamPlaces(per_key=1, per_organization=1), list[Message]()

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("the client stays")

    async def send(message: Message) -> None:
        sent.append(message)

    stream = EventStream(no_frames(), heartbeat_s=60, place=places.take(ONE))
    await stream.send_body(send, receive)  # type: ignore[arg-type]  # messages of both directions
    assert cast("dict[str, object]", sent[-1])["more_body"] is False
    places.take(ONE)


def test_a_stream_that_is_never_sent_leaves_its_place() -> None:
    places = StreamPlaces(per_key=1, per_organization=1)
    stream = EventStream(no_frames(), heartbeat_s=60, place=places.take(ONE))
    with refused("too_many_streams"):
        places.take(ONE)
    del stream
    places.take(ONE)
