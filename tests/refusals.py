"""Errors of use cases in tests: the one that a port raises, and the one that a block must raise."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from domain.errors import ErrorKind, ServiceError


def storage_away() -> ServiceError:
    """What a port raises while its database cannot be reached."""
    return ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The database cannot be reached.")


@contextmanager
def refused(code: str) -> Iterator[None]:
    """The block raises a ServiceError with this code."""
    with pytest.raises(ServiceError) as raised:
        yield
    assert raised.value.code == code, raised.value.code
