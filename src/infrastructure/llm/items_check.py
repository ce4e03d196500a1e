"""Checks items before they are kept, and again before they go back: earlier versions kept more."""

from collections.abc import Callable, Sequence

import msgspec

from domain.threads.provider_items import ProviderItems

CallIds = Callable[[ProviderItems], Sequence[str | None]]
"""The ids of the calls in items. Raises ValueError for items whose calls cannot be answered."""
_decode = msgspec.json.Decoder().decode


def kept_items(make: Callable[[], ProviderItems | None], call_ids: CallIds, *, calls: int) -> ProviderItems | None:
    """The items of a reply with this number of calls. None if they could not go back."""
    try:
        items = make()
        return items if items is None or len(_checked_ids(items, call_ids)) == calls else None
    except (ValueError, RecursionError):  # ValueError: also of msgspec
        return None


def sendable_items(items: ProviderItems | None, call_ids: CallIds) -> ProviderItems | None:
    """The items. None if they cannot go back; the message and its results are then sent
    neutrally."""
    try:
        if items is not None:
            _checked_ids(items, call_ids)
    except (ValueError, RecursionError):
        return None
    return items


def distinct_ids(ids: Sequence[str | None]) -> list[str]:
    """The ids. Raises ValueError if one is missing or repeated: results refer to them."""
    known = [call_id for call_id in ids if call_id]
    if len(known) != len(ids) or len(set(known)) != len(known):
        raise ValueError("ids of calls are missing or repeated")
    return known


def _checked_ids(items: ProviderItems, call_ids: CallIds) -> Sequence[str | None]:
    """Raises ValueError and RecursionError. Ids alone are decoded without looking into the other
    fields."""
    _decode(items.data)
    return call_ids(items)
