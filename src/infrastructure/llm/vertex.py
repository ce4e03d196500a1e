"""LanguageModel over Vertex AI, which serves models of several makers over their own APIs."""

from collections.abc import AsyncIterator

from application.models.ports import LanguageModel, ModelEvent, ModelRequest
from infrastructure.llm.model_families import is_claude_on_vertex
from infrastructure.llm.providers import ProviderConfig


class VertexModels:
    """Claude over the messages API, a model named `MAKER/NAME` over chat completions, all others as
    Gemini."""

    def __init__(
        self, provider: ProviderConfig, *, gemini: LanguageModel, messages: LanguageModel, chat: LanguageModel
    ) -> None:
        self._provider = provider
        self._gemini = gemini
        self._messages = messages
        self._chat = chat

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        name = request.model.partition(":")[2]
        if is_claude_on_vertex(self._provider, name):
            return self._messages.stream(request)
        return (self._chat if "/" in name else self._gemini).stream(request)
