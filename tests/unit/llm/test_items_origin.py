"""Items go back only to the provider, wire and model family that they came from."""

from domain.model_providers.provider import ProviderKind
from infrastructure.llm.items_origin import items_origin
from infrastructure.llm.providers import ProviderConfig


def a_provider(name: str = "acme", base_url: str = "https://models.example.com/v1") -> ProviderConfig:
    return ProviderConfig(name=name, kind=ProviderKind.OPENAI, base_url=base_url)


def test_snapshots_of_a_model_are_one_family() -> None:
    plain = items_origin(a_provider(), "chat", "claude-sonnet-4-5")
    assert items_origin(a_provider(), "chat", "claude-sonnet-4-5-20250929") == plain
    assert items_origin(a_provider(), "chat", "Claude-Sonnet-4-5-latest") == plain
    assert items_origin(a_provider(), "chat", "claude-sonnet-4-5-2025-09-29") == plain


def test_another_name_address_wire_or_model_is_another_origin() -> None:
    origins = {
        items_origin(a_provider(), "chat", "m-1"),
        items_origin(a_provider("other"), "chat", "m-1"),
        items_origin(a_provider(base_url="https://other.example.com/v1"), "chat", "m-1"),
        items_origin(a_provider(base_url="https://models.example.com/team/v1"), "chat", "m-1"),
        items_origin(a_provider(), "responses", "m-1"),
        items_origin(a_provider(), "chat", "m-2"),
    }
    assert len(origins) == 6
    assert items_origin(a_provider(base_url="https://models.example.com/v1/"), "chat", "m-1") in origins
