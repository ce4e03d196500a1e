"""A model provider's error."""

from dataclasses import dataclass, replace

from domain.json_value import JsonObject

MAX_MESSAGE_BYTES = 2 * 1024
_CUT = "… [cut]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderError:
    """For operators and admins only: `message` is foreign text that may quote the conversation.
    `status` is the HTTP status, if any; `code` is the provider's code or type."""

    status: int | None
    code: str | None
    message: str

    def to_json(self) -> JsonObject:
        return {"status": self.status, "code": self.code, "message": self.message}

    def shortened(self) -> "ProviderError":
        """With a message of MAX_MESSAGE_BYTES at most."""
        encoded = self.message.encode("utf-8", "replace")
        if len(encoded) <= MAX_MESSAGE_BYTES:
            return self
        message = encoded[: MAX_MESSAGE_BYTES - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT
        return replace(self, message=message)
