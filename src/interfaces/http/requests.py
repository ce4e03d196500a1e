"""The request as handlers see it: its principal, and JSON whose faults are client errors."""

from collections.abc import AsyncGenerator

from litestar import Request
from litestar.datastructures import State
from litestar.exceptions import ClientException, SerializationException

from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.json_value import JsonValue
from interfaces.disconnects import whole
from interfaces.json_bounds import MAX_VALUES, has_repeated_names, has_too_many_values, is_too_deep


class MalformedJson(ClientException):
    """The body is not JSON."""


class ApiRequest(Request[None, Principal, State]):
    """A request below `/v1`, authenticated before its body is read."""

    @property
    def principal(self) -> Principal:
        return self.auth

    async def stream(self) -> AsyncGenerator[bytes]:
        """The body in parts. Raises INVALID `client_disconnected`."""
        async for part in whole(super().stream()):
            yield part

    async def json(self) -> JsonValue:
        """The decoded body. Raises MalformedJson, also for excessive nesting and for
        an object with a name twice; TOO_LARGE `too_many_values`."""
        body = await self.body()
        if has_too_many_values(body):
            raise too_many_values()
        try:
            decoded: JsonValue = await super().json()
        except SerializationException as exc:
            reason = exc.detail.removeprefix("JSON is malformed: ")
            raise MalformedJson(detail=f"The request body is not valid JSON ({reason}).") from exc
        except UnicodeDecodeError as exc:
            raise MalformedJson(detail="The request body is not UTF-8.") from exc
        except RecursionError as exc:
            raise _too_deep() from exc
        if is_too_deep(body, decoded):
            raise _too_deep()
        if has_repeated_names(body, decoded):
            raise MalformedJson(detail="The request body has a name twice in one object.")
        return decoded


def too_many_values() -> ServiceError:
    """The error for JSON or a form with too many values."""
    detail = f"The request body has more than {MAX_VALUES} values."
    return ServiceError("too_many_values", ErrorKind.TOO_LARGE, detail)


def _too_deep() -> MalformedJson:
    return MalformedJson(detail="The request body is nested too deeply.")
