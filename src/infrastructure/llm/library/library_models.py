"""LanguageModel over model classes of pydantic-ai. Above: provider models. Below: the SDK of a
vendor over our HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import TypeVar

from anyio.to_thread import current_default_thread_limiter
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UserError
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from application.models.ports import ModelError, ModelEvent, ModelRequest
from application.system.lru import LruCache
from infrastructure.llm.exchange import ReplyLimits
from infrastructure.llm.items_origin import items_origin
from infrastructure.llm.library.library_call import CURRENT_CALL, LibraryCall
from infrastructure.llm.library.library_messages import library_messages, library_parameters
from infrastructure.llm.library.library_reply import delta_of, reply_of
from infrastructure.llm.model_inputs import NOTHING, ModelInput, refuses_inputs
from infrastructure.llm.provider_errors import ErrorObject, error_in_stream, gave_up, invalid_reply, without_secrets
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.wire_parameters import with_taken_settings

WIRE = "native"
"""In the origin of items."""
_MAX_MODELS = 200
_MAX_REFUSED = 1_000
_THREADS = 2
"""That a call can wait in at once: for bytes, and for the end of that."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """What differs from vendor to vendor.

    - `model`: a model by its name, without a request.
    - `settings`: the request's settings as the library names them, by the origin of items that the
      model takes back.
    - `taken_by`: the settings that a model takes. `inputs`: what it reads.
    """

    model: Callable[[str], Model]
    settings: Callable[[ModelRequest, str], ModelSettings]
    taken_by: Callable[[str], frozenset[str]]
    inputs: Callable[[str], frozenset[ModelInput]]


class LibraryModels:
    """The models of one provider.

    - All requests go through our HTTP clients. The library is given no URLs of images and files,
      which it would read itself.
    - Replies with reasoning or signatures go back as they came (ADR 0047).
    - Images and files that the provider refuses are described in the same request, and in later
      ones with the same messages.

    Raises ModelError only.
    """

    def __init__(self, *, provider: ProviderConfig, vendor: Vendor, reply_limits: ReplyLimits) -> None:
        self._provider = provider
        self._vendor = vendor
        self._limits = reply_limits
        self._redactor = provider.redactor()
        self._models: LruCache[str, Model] = LruCache(_MAX_MODELS)
        self._refused: LruCache[tuple[str, str], bool] = LruCache(_MAX_REFUSED)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        name = request.model.partition(":")[2]
        request = with_taken_settings(request, self._vendor.taken_by)
        described = any((name, message.id) in self._refused for message in request.messages)
        while True:
            begun = False
            try:
                async with aclosing(self._events(name, request, described=described)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except ModelError as error:
                if begun or described or not refuses_inputs(error, request):
                    raise
                described = True
                for message in request.messages:
                    self._refused.put((name, message.id), True)

    async def _events(self, name: str, request: ModelRequest, *, described: bool) -> AsyncGenerator[ModelEvent, None]:
        call = LibraryCall(limits=self._limits, redactor=self._redactor)
        origin = items_origin(self._provider, WIRE, name)
        threads = current_default_thread_limiter()
        threads.total_tokens += _THREADS  # so that no call waits for a thread of another one
        try:
            model = self._model(name)
            takes = NOTHING if described else self._vendor.inputs(name)
            messages = library_messages(request, origin=origin, takes=takes)
            settings, parameters = self._vendor.settings(request, origin), library_parameters(request)
            async with AsyncExitStack() as stack:
                opening = model.request_stream(messages, settings, parameters)
                events = await _within(call, stack.enter_async_context(opening))
                async for event in events:
                    if (delta := delta_of(event)) is not None:
                        yield delta
                response = events.get()
            if call.error is not None:
                raise call.error
            reply = reply_of(request.model, response, origin=origin)
        except ModelError as error:
            raise call.error or error from error
        except Exception as exc:
            raise call.error or without_secrets(_error_of(exc), self._redactor) from exc
        finally:
            call.close()
            threads.total_tokens -= _THREADS
        yield reply  # the connection is released first

    def _model(self, name: str) -> Model:
        model = self._models.get(name)
        if model is None:
            model = self._vendor.model(name)
            self._models.put(name, model)
        return model


async def _within(call: LibraryCall, work: Awaitable[T]) -> T:
    """What `work` returns; its requests are those of `call`."""
    before = CURRENT_CALL.set(call)
    try:
        return await work
    finally:
        CURRENT_CALL.reset(before)


def _error_of(exc: Exception) -> ModelError:
    """The error of a failure that our transport did not see: in the events of a stream, or before
    the request."""
    match exc:
        case ModelHTTPError():
            return error_in_stream(ErrorObject(code=exc.status_code, message=_message_in(exc.body)))
        case ModelAPIError():
            return gave_up()
        case UserError() | NotImplementedError():
            return ModelError("model_rejected", "The model does not take the request.", retryable=False)
        case _:
            return invalid_reply("sent a reply that cannot be read")


def _message_in(body: object) -> str:
    """The message in an error of botocore, or of Google."""
    if not isinstance(body, dict):
        return ""
    error = body.get("Error") or body.get("error")
    error = error if isinstance(error, dict) else body
    return str(error.get("Message") or error.get("message") or "")
