"""Which parameters a model takes, by its wire and the family that its name shows. Unknown families
take all of their wire's."""

import re
from enum import Enum

from application.models.ports import ModelRequest
from domain.json_value import JsonObject
from domain.model_providers.provider import ProviderKind
from infrastructure.llm.items_origin import model_family
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.strict_schema import OPENAI_CONSTRAINTS, strict_schema

_COMMON = frozenset(
    {"effort", "temperature", "top_p", "max_output_tokens", "parallel_tool_calls", "service_tier", "extra_body"}
)
TAKEN_BY_RESPONSES = _COMMON | {"verbosity"}
TAKEN_BY_CHAT = _COMMON | {"verbosity", "stop", "seed"}
TAKEN_BY_MESSAGES = _COMMON | {"thinking_budget", "stop", "cache_ttl"}
_TAKEN_BY_LIBRARY = frozenset({"effort", "temperature", "top_p", "max_output_tokens", "thinking_budget", "stop"})
TAKEN_BY_GEMINI = _TAKEN_BY_LIBRARY | {"seed"}
TAKEN_BY_CONVERSE = _TAKEN_BY_LIBRARY | {"cache_ttl"}

_SAMPLING = frozenset({"temperature", "top_p"})
_OPENAI_REASONING = re.compile(r"(?:^|/)(?:gpt-(?:[5-9]|\d\d)(?!.*-chat)|o\d)")
_OPENAI_PLAIN = re.compile(r"(?:^|/)(?:gpt-[34]|chatgpt|gpt-\d+(?:\.\d+)?-chat)")
_GEMINI = re.compile(r"(?:^|/)gemini-(?P<major>\d{1,2})")
_GEMINI_WITH_TOOLS = 3
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(?P<major>\d{1,2})(?:[.-](?P<minor>\d{1,2})(?!\d))?")


class Thinking(Enum):
    """How thinking of Claude is asked for."""

    ADAPTIVE = "adaptive"
    BUDGET = "budget"


def taken_by_chat(model_name: str) -> frozenset[str]:
    return TAKEN_BY_CHAT - _not_taken_at_openai(model_family(model_name))


def taken_by_responses(model_name: str) -> frozenset[str]:
    return TAKEN_BY_RESPONSES - _not_taken_at_openai(model_family(model_name))


def taken_by_messages(model_name: str) -> frozenset[str]:
    """Claude takes sampling and budgets before 4.7, and an effort since 4.5."""
    version = _claude_version(model_name)
    taken = TAKEN_BY_MESSAGES
    if version is None:
        return taken
    if version >= (4, 7):
        taken -= _SAMPLING | {"thinking_budget"}
    if version < (4, 5):
        taken -= {"effort"}
    return taken


def taken_by_converse(model_name: str) -> frozenset[str]:
    """Claude takes there what it takes elsewhere, and before 4.6 no effort. Only Claude has budgets
    and a lifetime of its cache."""
    if not is_claude(model_name):
        return TAKEN_BY_CONVERSE - {"thinking_budget", "cache_ttl"}
    without = frozenset({"effort"}) if thinking_of(model_name) is Thinking.BUDGET else frozenset()
    return TAKEN_BY_CONVERSE & taken_by_messages(model_name) - without


def settings_taken(provider: ProviderConfig, model_name: str) -> frozenset[str]:
    """What a model takes over the wire of its provider."""
    if provider.is_native and not is_claude_on_vertex(provider, model_name):
        return taken_by_converse(model_name) if provider.kind is ProviderKind.BEDROCK else TAKEN_BY_GEMINI
    if not provider.kind.is_openai_compatible:
        return taken_by_messages(model_name)
    return taken_by_responses(model_name) if provider.speaks_responses else taken_by_chat(model_name)


def native_schema(provider: ProviderConfig, request: ModelRequest) -> JsonObject | None:
    """The output schema of the request as its model generates answers by; None if the model is to
    be asked for it.

    - Models of OpenAI take every schema. Gemini takes one beside tools since version 3.
    - Claude takes one since 4.5, if it is in the subset.
    - Servers of other models have it too, but often call no tools then.
    """
    name, schema = request.model.partition(":")[2], request.output_schema
    if schema is None:
        return None
    if provider.is_native and not is_claude_on_vertex(provider, name):
        if provider.kind is ProviderKind.BEDROCK or not _generates_by_schema(name, has_tools=bool(request.tools)):
            return None
        return strict_schema(schema, optional=True, constraints=frozenset())
    if not provider.kind.is_openai_compatible:
        version = _claude_version(name)
        taken = version is not None and version >= (4, 5)
        return strict_schema(schema, optional=True, constraints=frozenset()) if taken else None
    if not provider.speaks_responses and not _generates_by_schema(model_family(name), has_tools=bool(request.tools)):
        return None
    return strict_schema(schema, optional=False, constraints=OPENAI_CONSTRAINTS) or schema


def _generates_by_schema(family: str, *, has_tools: bool) -> bool:
    gemini = _GEMINI.search(family)
    if gemini is not None:
        return not has_tools or int(gemini["major"]) >= _GEMINI_WITH_TOOLS
    return bool(_OPENAI_REASONING.search(family) or _OPENAI_PLAIN.search(family))


def is_claude(model_name: str) -> bool:
    return _CLAUDE.search(model_name) is not None


def is_claude_on_vertex(provider: ProviderConfig, model_name: str) -> bool:
    """Vertex AI serves Claude over the messages API."""
    return provider.kind is ProviderKind.VERTEX and is_claude(model_name)


def thinking_of(model_name: str) -> Thinking:
    """Claude has adaptive thinking since 4.6, and took only budgets before."""
    version = _claude_version(model_name)
    return Thinking.BUDGET if version is not None and version < (4, 6) else Thinking.ADAPTIVE


def _not_taken_at_openai(family: str) -> frozenset[str]:
    if _OPENAI_REASONING.search(family):
        return _SAMPLING | {"stop"}
    if _OPENAI_PLAIN.search(family):
        return frozenset({"effort", "verbosity"})
    return frozenset()


def _claude_version(model_name: str) -> tuple[int, int] | None:
    """Major and minor. Older names have the version before the model: `claude-3-7-sonnet`."""
    found = _CLAUDE.search(model_family(model_name))
    return None if found is None else (int(found["major"]), int(found["minor"] or 0))
