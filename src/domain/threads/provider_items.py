"""What a provider said in one reply, in its own format: opaque here, read only by the adapter of
its wire."""

from dataclasses import dataclass, field

MAX_ITEMS_BYTES = 1024 * 1024
"""Limit of the items of one message. Larger items are not stored, and the message is sent
neutrally."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderItems:
    """The provider's own items of one reply: reasoning, signatures, calls with the provider's ids.

    - `origin` names the provider, its wire and the model family. Only a request with the same
      origin gets the items back.
    - `data` is a JSON array, possibly secret. It is stored encrypted, and never shown, logged,
      traced or exported.
    """

    origin: str
    data: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """Size of the items in bytes."""
        return len(self.data)

    @property
    def is_too_large(self) -> bool:
        return len(self.data) > MAX_ITEMS_BYTES
