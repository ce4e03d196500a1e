"""LanguageModel that holds models to output schemas. Above: model routing. Below: the adapter of a
provider."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace

from application.models.ports import LanguageModel, ModelError, ModelEvent, ModelRequest
from application.system.lru import LruCache
from domain.json_value import JsonObject, canonical_digest, canonical_json

NativeForm = Callable[[ModelRequest], JsonObject | None]
"""The output schema as the request's model takes it; None if it takes none."""
_MAX_REFUSED = 1_000
_WORDS = (
    *("response_format", "text.format", "output_config", "output_format", "json_schema", "json schema"),
    *("structured output", "invalid schema", "responseschema", "response mime type"),
)
"""Of refusals."""
_ASKED = """\
Your final answer must be a JSON object that matches this JSON Schema. Write nothing before and after it.
{schema}"""


class OutputSchemas:
    """Rules:
    - A model that generates answers by a schema is sent it as a parameter.
    - All others are asked for it at the end of the system prompt.
    - A refused schema is asked for in the prompt, and so is the same schema in later requests to
      the model.

    The answer is checked by the caller.
    """

    def __init__(self, inner: LanguageModel, native_form: NativeForm) -> None:
        self._inner = inner
        self._native_form = native_form
        self._refused: LruCache[tuple[str, str], bool] = LruCache(_MAX_REFUSED)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if request.output_schema is None:
            return self._inner.stream(request)
        return self._held(request, request.output_schema)

    async def _held(self, request: ModelRequest, schema: JsonObject) -> AsyncIterator[ModelEvent]:
        key = (request.model, canonical_digest(schema))
        native = None if key in self._refused else self._native_form(request)
        while True:
            begun = False
            sent = _asked(request, schema) if native is None else replace(request, output_schema=native)
            events = self._inner.stream(sent)
            try:
                async for event in events:
                    begun = True
                    yield event
                return
            except ModelError as error:
                if begun or native is None or not _refuses_schema(error):
                    raise
                self._refused.put(key, True)
                native = None
            finally:
                if isinstance(events, AsyncGenerator):
                    await events.aclose()


def _asked(request: ModelRequest, schema: JsonObject) -> ModelRequest:
    wish = _ASKED.format(schema=canonical_json(schema))
    return replace(request, system=f"{request.system}\n\n{wish}" if request.system else wish, output_schema=None)


def _refuses_schema(error: ModelError) -> bool:
    if error.code != "model_rejected" or error.provider_error is None:
        return False
    said = error.provider_error.message.lower()
    return any(words in said for words in _WORDS)
