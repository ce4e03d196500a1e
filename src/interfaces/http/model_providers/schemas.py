"""Bodies of the model provider routes."""

from typing import Annotated, ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from domain.model_providers.provider import ProviderKind
from interfaces.http.bodies import Body, Name, Patch
from interfaces.http.secrets.references import WriteOnly

Kind = Annotated[ProviderKind, Field(strict=False)]
BaseUrl = Annotated[str, Field(max_length=2_048)]


class ModelProviderBody(Body):
    """A provider of models. Without `base_url` it is the vendor's own address. `api_key` is
    write-only, or a reference to a named secret; without one no key is sent."""

    examples: ClassVar[tuple[JsonObject, ...]] = (
        {"name": "acme", "kind": "openai", "base_url": "https://models.example.com/v1", "api_key": {"secret": "ACME"}},
    )

    name: Name = Field(description="[a-z0-9][a-z0-9_-]{0,63}; models are then `NAME:model`.")
    kind: Kind = Field(description="The protocol of its API.")
    base_url: BaseUrl | None = None
    api_key: WriteOnly | None = Field(default=None, repr=False)


class UpdateModelProviderBody(Patch, of=ModelProviderBody, without=("name",)):
    """Changes to a provider; absent fields stay; `api_key` null removes its key."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"api_key": {"secret": "ACME"}},)
    nullable: ClassVar[frozenset[str]] = frozenset({"api_key"})
