"""The list of a provider's models, over HTTP."""

import aiohttp
import msgspec

from application.models.ports import ModelError
from domain.model_providers.provider import ProviderKind
from infrastructure.http.egress import EgressBlockedError
from infrastructure.http.sessions import is_decoded
from infrastructure.llm.exchange import ProviderHttp, read_body
from infrastructure.llm.provider_errors import (
    MAX_ERROR_BYTES,
    error_of_answer,
    error_of_transport,
    invalid_reply,
    oversized,
    without_secrets,
)
from infrastructure.llm.provider_headers import headers_of
from infrastructure.llm.providers import ProviderConfig

MAX_MODELS = 2_000
MAX_NAME = 256
_MAX_BYTES = 16 * 1024 * 1024
"""Routers describe hundreds of models with kilobytes each."""
_TOTAL_S = 20.0


class _Model(msgspec.Struct):
    """Vertex AI and the Gemini API have a path as the name."""

    id: str | None = None
    name: str | None = None
    modelId: str | None = None  # noqa: N815 - of Bedrock


class _Models(msgspec.Struct):
    """The list of OpenAI and Anthropic, of the Gemini API, of Vertex AI, or of Bedrock."""

    data: list[_Model] | None = None
    models: list[_Model] | None = None
    publisherModels: list[_Model] | None = None  # noqa: N815
    modelSummaries: list[_Model] | None = None  # noqa: N815

    def names(self) -> list[str]:
        """Raises ValueError if there is no list, or a model in it without a name."""
        if self.data is not None:
            names = [model.id for model in self.data]
        elif self.modelSummaries is not None:
            names = [model.modelId for model in self.modelSummaries]
        else:
            paths = self.models if self.models is not None else self.publisherModels
            names = [None] if paths is None else [model.name and model.name.rpartition("/")[2] for model in paths]
        known = [name for name in names if name is not None]
        if len(known) != len(names):
            raise ValueError("there is no list")
        return known


_decode = msgspec.json.Decoder(_Models).decode


class HttpModelList:
    """The ModelList of one provider, by `GET {base_url}/models`. Of more than MAX_MODELS models the
    first are listed."""

    def __init__(self, *, provider: ProviderConfig, http: ProviderHttp) -> None:
        self._address = http.to(_address_of(provider), headers_of(provider))
        self._redactor = provider.redactor()
        self._needs_signature = (
            provider.kind is ProviderKind.BEDROCK and provider.is_native and provider.header_key is None
        )

    async def names(self) -> tuple[str, ...]:
        if self._needs_signature:
            raise ModelError("model_rejected", "Bedrock lists its models for API keys only.", retryable=False)
        try:
            answer = await self._address.get(total_s=_TOTAL_S)
            try:
                if not is_decoded(answer.headers.get("content-encoding", "identity")):
                    raise invalid_reply("compressed its answer in a way that was not asked for")
                if answer.status != 200:
                    said = await read_body(answer, MAX_ERROR_BYTES, within_s=_TOTAL_S)
                    raise without_secrets(error_of_answer(answer.status, answer.headers, said), self._redactor)
                body = await read_body(answer, _MAX_BYTES + 1, within_s=_TOTAL_S)
            finally:
                answer.close()
        except (aiohttp.ClientError, EgressBlockedError, TimeoutError) as exc:
            raise error_of_transport(exc, streaming=False) from exc
        if len(body) > _MAX_BYTES:
            raise oversized("a list of models")
        return _names_in(body)


def _address_of(provider: ProviderConfig) -> str:
    base_url = provider.base_url.rstrip("/")
    if provider.is_native:
        return _native_address(provider.kind, base_url)
    if provider.kind.is_openai_compatible:
        return f"{base_url}/models"
    return f"{base_url.removesuffix('/v1')}/v1/models?limit=1000"


def _native_address(kind: ProviderKind, base_url: str) -> str:
    if kind is ProviderKind.BEDROCK:
        return f"{base_url.replace('//bedrock-runtime', '//bedrock', 1)}/foundation-models"
    if kind is ProviderKind.VERTEX:
        return f"{base_url}/v1beta1/publishers/google/models?pageSize=300"
    return f"{base_url.removesuffix('/v1beta/openai')}/v1beta/models?pageSize=1000"


def _names_in(body: bytes) -> tuple[str, ...]:
    try:
        known = _decode(body).names()
    except (ValueError, RecursionError) as exc:
        raise invalid_reply("sent a list of models that cannot be read", retryable=False) from exc
    names = {name for name in known if 0 < len(name) <= MAX_NAME and name.isprintable()}
    return tuple(sorted(names)[:MAX_MODELS])
