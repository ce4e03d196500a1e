"""Bodies of requests, held to the types of the vendors' own clients."""

import json
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from os import PathLike
from threading import Lock
from types import UnionType
from typing import IO, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import TypeAdapter
from typing_extensions import TypedDict, is_typeddict

OWN_FIELDS = frozenset(
    {"reasoning_content", "reasoning", "reasoning_details", "reasoning_text", "reasoning_opaque", "extra_content"}
)
"""Of messages and their calls in chat completions: fields of other vendors, which OpenAI's types do
not have."""


_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
"""Parameters that Anthropic's types do not have any more, and older models take."""
_REASON = "needs `make peers`"
NEEDS_SDK_TYPES = pytest.mark.skipif(not (find_spec("openai") and find_spec("anthropic")), reason=_REASON)
"""For tests that check bodies elsewhere than in the test itself, where it could not be skipped."""


def valid_responses_body(body: bytes) -> dict[str, Any]:
    """A body of `POST /responses`, checked."""
    value = _json(body)
    return _checked(value, _responses_params())


def valid_chat_body(body: bytes) -> dict[str, Any]:
    """A body of `POST /chat/completions`, checked but for `OWN_FIELDS`."""
    value = _json(body)
    plain = {**value, "messages": [_without_own_fields(message) for message in value["messages"]]}
    _checked(plain, _chat_params())
    return value


def valid_messages_body(body: bytes) -> dict[str, Any]:
    """A body of `POST /v1/messages`, checked but for parameters of older models."""
    value = _json(body)
    plain = {name: field for name, field in value.items() if name not in _SAMPLING}
    _checked(plain, _messages_params())
    return value


@cache
def _responses_params() -> TypeAdapter[Any]:
    params = _types("openai.types.responses.response_create_params")
    return _adapter(params.ResponseCreateParamsStreaming)


@cache
def _chat_params() -> TypeAdapter[Any]:
    params = _types("openai.types.chat.completion_create_params")
    return _adapter(params.CompletionCreateParamsStreaming)


@cache
def _messages_params() -> TypeAdapter[Any]:
    params = _types("anthropic.types.message_create_params")
    return _adapter(params.MessageCreateParamsStreaming)


_FILES = (IO, PathLike)
"""What clients read the content of."""


def _adapter(params: Any) -> TypeAdapter[Any]:
    return TypeAdapter(_with_lists(params, {}))


def _with_lists(type_: Any, known: dict[Any, Any]) -> Any:
    """The type with a list for each iterable: pydantic validates iterables while they are read, so
    it cannot tell which type of a union they fit."""
    if is_typeddict(type_):
        if type_ not in known:
            known[type_] = copied = TypedDict(type_.__name__, {})  # type: ignore[operator]
            copied.__required_keys__, copied.__optional_keys__ = type_.__required_keys__, type_.__optional_keys__
            hints = get_type_hints(type_)
            copied.__annotations__ = {name: _with_lists(hint, known) for name, hint in hints.items()}
        return known[type_]
    origin, arguments = get_origin(type_), tuple(_with_lists(argument, known) for argument in get_args(type_))
    if origin is Iterable:
        return list[arguments]  # type: ignore[valid-type]
    if origin in (Union, UnionType):
        return Union[tuple(argument for argument in arguments if get_origin(argument) not in _FILES)]  # noqa: UP007
    return type_ if origin is None or origin is Literal else origin[arguments]


_IMPORTING = Lock()
"""Providers may listen on threads of their own, and these packages fail if several threads import
them at once."""


def _types(module: str) -> Any:
    with _IMPORTING:
        return pytest.importorskip(module, reason=_REASON)


def _without_own_fields(message: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in message.items() if name not in OWN_FIELDS}
    if "tool_calls" in plain:
        plain["tool_calls"] = [
            {name: value for name, value in call.items() if name not in OWN_FIELDS} for call in plain["tool_calls"]
        ]
    return plain


def _checked(value: dict[str, Any], adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The type takes the value and knows all of its fields: others would be missing when it is
    written again."""
    assert json.loads(adapter.dump_json(adapter.validate_python(value), warnings=False)) == value
    return value


def _json(body: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(body)
    return value
