"""Every model under its name `PROVIDER:NAME`: which adapter answers for it, and why one cannot be used."""

from collections.abc import AsyncIterator, Callable, Iterable

from application.models.ports import LanguageModel, ModelError, ModelEvent, ModelRequest
from domain.ids import OrganizationId
from infrastructure.llm.providers import SCRIPTED, ProviderConfig
from infrastructure.llm.scripted import ScriptedModels


class RoutedModels:
    """LanguageModel and ModelDirectory over the configured providers and the scripted models. A provider is opened when
    it is first asked for."""

    def __init__(
        self,
        *,
        providers: Iterable[ProviderConfig],
        open_provider: Callable[[ProviderConfig], LanguageModel],
        scripted: ScriptedModels,
    ) -> None:
        self._providers = {provider.name: provider for provider in providers}
        self._open_provider = open_provider
        self._scripted = scripted
        self._opened: dict[str, LanguageModel] = {}

    def problem_with(self, organization_id: OrganizationId, model: str) -> str | None:
        """One sentence saying why `PROVIDER:NAME` cannot be used, or None. Makes no request."""
        provider_name, colon, name = model.partition(":")
        if not colon or not provider_name or not name:
            return f"A model is named PROVIDER:NAME, such as openai:gpt-5-mini or scripted:hello.yaml, not {model!r}."
        if provider_name == SCRIPTED:
            return self._scripted.problem_with(name)
        return self._problem_with_provider(provider_name)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The reply of the adapter behind the provider's name. Raises ModelError `model_rejected` for what
        `problem_with` objects to."""
        provider_name = request.model.partition(":")[0]
        if provider_name == SCRIPTED:
            return self._scripted.stream(request)
        problem = self._problem_with_provider(provider_name)
        if problem is not None:
            raise ModelError("model_rejected", problem, retryable=False)
        opened = self._opened.get(provider_name)
        if opened is None:
            opened = self._open_provider(self._providers[provider_name])
            self._opened[provider_name] = opened
        return opened.stream(request)

    def _problem_with_provider(self, provider_name: str) -> str | None:
        provider = self._providers.get(provider_name)
        if provider is None:
            known = ", ".join(sorted([*self._providers, SCRIPTED]))
            return f"There is no model provider {provider_name!r}; there are: {known}."
        if provider.lacks_key:
            return f"The model provider {provider_name!r} has no API key; set {provider.kind.upper()}_API_KEY."
        return None
