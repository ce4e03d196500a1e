"""The request as handlers see it: who sent it, and its JSON with errors that are the client's own."""

from litestar import Request
from litestar.datastructures import State
from litestar.exceptions import ClientException, SerializationException

from domain.identity.api_key import Principal
from domain.json_value import JsonValue


class MalformedJson(ClientException):
    """The body is not JSON."""


class ApiRequest(Request[None, Principal, State]):
    """A request below `/v1`, authenticated before anything of it is read."""

    @property
    def principal(self) -> Principal:
        """Who sends it."""
        return self.auth

    async def json(self) -> JsonValue:
        """The decoded body. Raises MalformedJson, also for nesting too deep to decode."""
        try:
            decoded: JsonValue = await super().json()
            return decoded
        except SerializationException as exc:
            reason = exc.detail.removeprefix("JSON is malformed: ")
            raise MalformedJson(detail=f"The request body is not valid JSON ({reason}).") from exc
        except RecursionError as exc:
            raise MalformedJson(detail="The request body is nested too deeply.") from exc
