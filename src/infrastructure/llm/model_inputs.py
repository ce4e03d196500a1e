"""Which images and files a model reads, by its wire and the family that its name shows."""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from application.models.ports import ModelError, ModelRequest
from application.system.lru import LruCache
from domain.ids import MessageId
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.items_origin import model_family
from infrastructure.llm.providers import ProviderConfig

_MAX_MODELS = 1_000
_MAX_REFUSED = 10_000


class ModelInput(StrEnum):
    """What a model may read besides text."""

    IMAGE = "image"
    PDF = "pdf"
    AUDIO = "audio"


NOTHING: frozenset[ModelInput] = frozenset()
_IMAGE = frozenset({ModelInput.IMAGE})
_PAGES = frozenset({ModelInput.IMAGE, ModelInput.PDF})
_SOUND = frozenset({ModelInput.AUDIO})

_TEXT_ONLY = re.compile(
    r"(?:^|/)(?:gpt-3|gpt-4(?:-32k|-\d{4}|$)|gpt-oss|o1-(?:mini|preview)|o3-mini|deepseek-(?!vl|ocr)|codestral"
    r"|kimi-k2(?![.\d])|glm-\d+(?:\.\d+)?(?![.\dv])|claude-(?:2|instant))"
)
_OPENAI = re.compile(r"(?:^|/)(?:gpt-|o\d|chatgpt)")
_READS_PAGES = re.compile(r"claude|nova-(?!micro)")
_HEARS_ONLY = re.compile(r"(?:^|/)gpt-(?:\S+-)?audio")
_HEARS = re.compile(r"(?:^|/)gemini-|-omni(?:-|$)")
_OPENROUTER = "openrouter.ai"


def inputs_of(provider: ProviderConfig, model_name: str) -> frozenset[ModelInput]:
    """Unknown models get images, as most take them. PDFs and audio are sent to families that are
    known to take them."""
    family = model_family(model_name)
    images = NOTHING if _TEXT_ONLY.search(family) else _IMAGE
    if provider.kind is ProviderKind.BEDROCK and provider.is_native:
        return _PAGES if _READS_PAGES.search(family) else images
    if not provider.kind.is_openai_compatible:
        return _PAGES if images and "claude" in family else images
    if provider.speaks_responses:
        return _PAGES if images and _OPENAI.search(family) else images
    return _inputs_of_chat(provider, family, images)


def _inputs_of_chat(provider: ProviderConfig, family: str, images: frozenset[ModelInput]) -> frozenset[ModelInput]:
    if _HEARS_ONLY.search(family):
        return _SOUND
    if provider.kind is ProviderKind.OPENROUTER or urlsplit(provider.base_url).hostname == _OPENROUTER:
        # It takes PDFs for any model, and reads them for those that cannot.
        images |= {ModelInput.PDF}
    elif images and _OPENAI.search(family):
        images = _PAGES
    return images | _SOUND if _HEARS.search(family) else images


_REFUSED = re.compile(
    r"(?<![a-z])(?:images?|vision|multi-?modal|modalit(?:y|ies)|audio|pdfs?|documents?|files?|media)(?![a-z])"
)


def refuses_inputs(error: ModelError, request: ModelRequest) -> bool:
    """Whether the provider refused a request because of its images or files, as far as its words
    show."""
    said = error.provider_error
    if said is None or error.code != "model_rejected" or not any(message.attachments for message in request.messages):
        return False
    return _REFUSED.search(f"{said.code or ''} {said.message}".lower()) is not None


WireT = TypeVar("WireT")


class WiresByInput(Generic[WireT]):
    """The encoders of a provider, one for each set of inputs that its models have: encoded messages
    are cached by set.

    Messages with attachments that a model refused are described in its later requests: one broken
    image must not keep the images of other messages from the model.
    """

    def __init__(self, provider: ProviderConfig, make: Callable[[frozenset[ModelInput]], WireT]) -> None:
        self._provider = provider
        self._make = make
        self._made: dict[frozenset[ModelInput], WireT] = {}
        self._by_name: LruCache[str, WireT] = LruCache(_MAX_MODELS)
        self._refused: LruCache[tuple[str, MessageId], bool] = LruCache(_MAX_REFUSED)

    def of(self, model_name: str) -> WireT:
        """The encoder for a model."""
        wire = self._by_name.get(model_name)
        if wire is None:
            wire = self._with(inputs_of(self._provider, model_name))
            self._by_name.put(model_name, wire)
        return wire

    def for_request(self, model_name: str, request: ModelRequest) -> WireT:
        """The encoder for a request to a model."""
        return self.describing() if self.has_refused(model_name, request) else self.of(model_name)

    def has_refused(self, model_name: str, request: ModelRequest) -> bool:
        """Whether the model refused attachments of one of the messages."""
        refused = self._refused
        return len(refused) > 0 and any((model_name, message.id) in refused for message in request.messages)

    def remember_refusal(self, model_name: str, request: ModelRequest) -> None:
        """The model refused the attachments of the request."""
        for message in request.messages:
            if message.attachments:
                self._refused.put((model_name, message.id), True)

    def describing(self) -> WireT:
        """An encoder that describes images and files."""
        return self._with(NOTHING)

    def _with(self, inputs: frozenset[ModelInput]) -> WireT:
        if inputs not in self._made:
            self._made[inputs] = self._make(inputs)
        return self._made[inputs]
