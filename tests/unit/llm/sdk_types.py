"""Bodies of requests, held to the types of the vendors' own clients."""

import json
from functools import cache
from typing import Any

import pytest
from pydantic import TypeAdapter


def valid_responses_body(body: bytes) -> dict[str, Any]:
    """A body of `POST /responses`, checked."""
    value = _json(body)
    return _checked(value, _responses_params(streaming=value.get("stream") is True))


@cache
def _responses_params(*, streaming: bool) -> TypeAdapter[Any]:
    # Not their union: a list that is validated while it is read would be read once for each of its types.
    params = pytest.importorskip("openai.types.responses.response_create_params", reason="needs `make peers`")
    return TypeAdapter(params.ResponseCreateParamsStreaming if streaming else params.ResponseCreateParamsNonStreaming)


def _checked(value: dict[str, Any], adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The type takes the value and knows all of its fields: others would be missing when it is written again."""
    assert json.loads(adapter.dump_json(adapter.validate_python(value), warnings=False)) == value
    return value


def _json(body: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(body)
    return value
