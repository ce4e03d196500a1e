"""Bounds on the event streams that one API key, and one organization, has open."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal

RETRY_AFTER_S = "10"


class StreamPlaces:
    """The open streams of this process."""

    def __init__(self, *, per_key: int, per_organization: int) -> None:
        self._per_key = per_key
        self._per_organization = per_organization
        self._open: Counter[str] = Counter()

    @classmethod
    def among(cls, connections: int) -> "StreamPlaces":
        """Places of a process with so many connections: a quarter for a key, half for an
        organization."""
        return cls(per_key=max(connections // 4, 1), per_organization=max(connections // 2, 1))

    def take(self, principal: Principal) -> "StreamPlace":
        """A place for one more stream. Raises LIMIT `too_many_streams`."""
        full = [
            bound
            for name, bound in (
                (principal.key_id, self._per_key),
                (principal.organization_id, self._per_organization),
            )
            if self._open[name] >= bound
        ]
        if full:
            detail = f"{full[0]} event streams are open already. Close some, or wait for runs instead."
            raise ServiceError("too_many_streams", ErrorKind.LIMIT, detail, extra={"retry_after_s": RETRY_AFTER_S})
        names = principal.key_id, principal.organization_id
        self._open.update(names)
        return StreamPlace(self._open, names)

    @contextmanager
    def taken(self, principal: Principal) -> Iterator["StreamPlace"]:
        """A place, which is left if the stream fails to begin. Raises as `take`."""
        place = self.take(principal)
        try:
            yield place
        except BaseException:
            place.leave()
            raise


class StreamPlace:
    """The place of one stream."""

    def __init__(self, counted: Counter[str], names: tuple[str, ...]) -> None:
        self._counted = counted
        self._names = names

    def leave(self) -> None:
        """Free the place; again, it has no effect."""
        names, self._names = self._names, ()
        self._counted.subtract(names)
        for name in names:
            if not self._counted[name]:
                del self._counted[name]
