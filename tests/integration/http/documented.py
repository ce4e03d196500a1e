"""The OpenAPI document, and whether responses are as it says."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import httpx
import jsonschema_rs
from litestar.serialization import encode_json

from interfaces.http.app import create_api
from interfaces.http.runs.frames import EventFrames
from interfaces.http.stream_places import StreamPlaces
from tests.composition import a_container

Node = Mapping[str, Any]
"""A part of the document."""


@cache
def document() -> dict[str, Any]:
    """The document of the production container."""
    api = create_api(
        a_container(app_version="1.2.3"), frames=EventFrames(), places=StreamPlaces.among(4), heartbeat_s=15.0
    )
    decoded: dict[str, Any] = json.loads(encode_json(api.openapi_schema.to_schema()))
    return decoded


def operations() -> Iterator[tuple[str, Node]]:
    """Every operation, under its method and path."""
    for path, item in document()["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def assert_documented(method: str, path: str, response: httpx.Response) -> None:
    """The body of a JSON response has the shape that the document gives it."""
    media_type = response.headers.get("content-type", "").partition(";")[0]
    if media_type not in ("application/json", "application/problem+json") or method == "HEAD":
        return
    validator = _validator(method.lower(), _template(path.partition("?")[0]), str(response.status_code), media_type)
    if validator is not None:
        faults = [
            f"{'.'.join(map(str, fault.instance_path))}: {fault.message}"
            for fault in validator.iter_errors(response.json())
        ]
        assert faults == [], f"{method} {path} is not answered as documented"


@cache
def _validator(
    method: str, template: str | None, status: str, media_type: str
) -> jsonschema_rs.Draft202012Validator | None:
    operation = document()["paths"].get(template, {}).get(method, {})
    content = operation.get("responses", {}).get(status, {}).get("content", {})
    if media_type not in content:
        return None
    schema = {**content[media_type]["schema"], "components": document()["components"]}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


@cache
def _template(path: str) -> str | None:
    """The documented path that a path is one of; fixed parts win over parameters."""
    fitting = [
        template
        for template in document()["paths"]
        if re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", template), path) is not None
    ]
    return min(fitting, key=lambda template: template.count("{"), default=None)
