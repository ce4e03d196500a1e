"""Ids of responses and their items. A response is a part of a run: from its start, or from where it
waited, to where it ends or waits. Its id has the run and, after the first part, the number of the
part."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from domain.errors import ServiceError, not_found
from domain.ids import RunId, ThreadId

_RESPONSE = re.compile(r"resp_([0-9A-Za-z]{26})(?:_([1-9][0-9]{0,8}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A part of a run; the first is 0."""

    run_id: RunId
    part: int = 0

    @property
    def id(self) -> str:
        own = self.run_id.partition("_")[2]
        return f"resp_{own}_{self.part}" if self.part else f"resp_{own}"


def place_of(response_id: str) -> Place:
    """Raises NOT_FOUND `response_not_found`."""
    found = _RESPONSE.fullmatch(response_id)
    if found is None:
        raise no_response(response_id)
    return Place(run_id=RunId(f"run_{found.group(1)}"), part=int(found.group(2) or 0))


def no_response(response_id: str) -> ServiceError:
    return not_found("response", response_id)


@contextmanager
def named(what: str, identifier: str) -> Iterator[None]:
    """A missing run or thread is the missing `what` with the client's id."""
    try:
        yield
    except ServiceError as error:
        if error.code in ("run_not_found", "thread_not_found"):
            raise not_found(what, identifier) from error
        raise


def conversation_id(thread_id: ThreadId) -> str:
    return f"conv_{thread_id.partition('_')[2]}"


def thread_of(conversation: str) -> ThreadId:
    """Raises NOT_FOUND `conversation_not_found`."""
    kind, _, own = conversation.partition("_")
    if kind != "conv" or not own:
        raise not_found("conversation", conversation)
    return ThreadId(f"thr_{own}")


def item_id(kind: str, identifier: str) -> str:
    """The id of an item made from a message or a call of ours: `rs_…`, `fc_…`, `mcp_…`."""
    return f"{kind}_{identifier.partition('_')[2]}"
