"""Places of model providers that say what a test has ready for them."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from application.model_providers.ports import ProviderPlace
from application.models.ports import ModelError, ModelEvent, ModelReply, ModelRequest, RequestedCall
from domain.ids import OrganizationId
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from infrastructure.llm.providers import ProviderConfig


def said(*calls: RequestedCall, text: str = "", streamed: bool = True) -> ModelReply:
    return ModelReply(
        model="acme:small",
        text=text,
        calls=calls,
        usage=ModelUsage(input_tokens=10, output_tokens=5),
        finish_reason=FinishReason.TOOL_CALLS if calls else FinishReason.STOP,
        streamed=streamed,
    )


@dataclass
class TalkingPlace:
    """A place whose model gives the `answers` in turn, then calls the tools that it has, and which
    lists `models` or fails."""

    answers: list[ModelReply | ModelError] = field(default_factory=list)
    models: tuple[str, ...] | ModelError = ("large", "small")
    requests: list[ModelRequest] = field(default_factory=list)
    listings: int = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        calls = [RequestedCall(name=tool.name, arguments={"text": "pong"}) for tool in request.tools]
        answer = self.answers.pop(0) if self.answers else said(*calls)
        if isinstance(answer, ModelError):
            raise answer
        yield answer

    async def names(self) -> tuple[str, ...]:
        self.listings += 1
        if isinstance(self.models, ModelError):
            raise self.models
        return self.models


class InMemoryProviderPlaces:
    """The `ProviderPlaces` port: the same providers for every organization, each with its
    deployments."""

    def __init__(self, providers: Mapping[str, Mapping[str | None, TalkingPlace] | ModelError]) -> None:
        self._providers = providers

    async def places(self, organization_id: OrganizationId, name: str) -> tuple[ProviderPlace, ...]:
        found = self._providers.get(name, {})
        if isinstance(found, ModelError):
            raise found
        return tuple(
            ProviderPlace(deployment=deployment, identity=id(place), models=place, model_list=place)
            for deployment, place in found.items()
        )

    async def names(self, organization_id: OrganizationId) -> tuple[str, ...]:
        return tuple(sorted(self._providers))


class TalkingProviders:
    """Opens providers without a network: a TalkingPlace for each configuration, in `opened`."""

    def __init__(self) -> None:
        self.place = TalkingPlace()
        self.opened: list[ProviderConfig] = []

    def open(self, provider: ProviderConfig) -> TalkingPlace:
        self.opened.append(provider)
        return self.place

    def model_list(self, provider: ProviderConfig) -> TalkingPlace:
        return self.place

    async def close(self) -> None:
        """Nothing is open."""
