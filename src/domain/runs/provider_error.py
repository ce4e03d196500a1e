"""A model provider's error."""

from dataclasses import dataclass

from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderError:
    """For operators and admins only: `message` is foreign text that may quote the conversation.
    `status` is the HTTP status, if any; `code` is the provider's code or type."""

    status: int | None
    code: str | None
    message: str

    def to_json(self) -> JsonObject:
        return {"status": self.status, "code": self.code, "message": self.message}
