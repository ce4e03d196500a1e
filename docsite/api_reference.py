"""The reference of the HTTP API, from the OpenAPI document that the service answers at /schema."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from infrastructure.settings import Settings
from interfaces.cli.asgi_transport import StreamingAsgiTransport
from interfaces.service import embedded

Node = Mapping[str, Any]
"""A part of the document: JSON of the shape that OpenAPI 3.1 says."""

_METHODS = ("get", "post", "put", "patch", "delete")
_ALWAYS = {"400", "401", "413", "422", "429", "500"}
"""Statuses of failures that any operation (with a body, 413) may answer."""
_TO_SCHEMA = "#/components/schemas/"
_INTRODUCTION = """# HTTP API

Version {version}. `Authorization: Bearer dgm_…` everywhere under `/v1`. The same as an OpenAPI 3.1 document is at `/schema/openapi.json` of every
running service, for [generating clients](../examples.md).

- **Roles**: `viewer`, `runner`, `operator` and `admin`; each may do what those before it may ([organizations](../guides/organizations.md#roles)). Where no
  role is named, every key may.
- **Lists** take `limit` and `cursor`, and answer `{{"data": […], "next_cursor": …}}`.
- **Failures** are `application/problem+json`: `type`, `title`, `status`, `detail`, `code`, and for input `errors` with `path` and `message`. 400, 401, 422,
  429 and 500 may always come, 413 where there is a body; further statuses are named.
- Unknown fields are refused. Times are RFC 3339 in UTC.
"""


def openapi_document() -> dict[str, Any]:
    """The document of a service over an empty directory."""
    with TemporaryDirectory() as home:
        return asyncio.run(_answered(Settings(home=Path(home))))


async def _answered(settings: Settings) -> dict[str, Any]:
    async with (
        embedded(settings, worker=False) as service,
        httpx.AsyncClient(transport=StreamingAsgiTransport(service.app), base_url="http://service") as client,
    ):
        document: dict[str, Any] = (await client.get("/schema/openapi.json")).raise_for_status().json()
        return document


def api_page(document: Node) -> str:
    """The page, in Markdown: operations by tag, then the shapes they name."""
    by_tag: dict[str, list[str]] = {}
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                lines = _operation(method.upper(), path, item[method], document)
                by_tag.setdefault(item[method]["tags"][0], []).extend(lines)
    about = {tag["name"]: tag["description"] for tag in document["tags"]}
    sections = [f"## {tag}\n\n{about[tag]}\n\n" + "\n".join(by_tag[tag]) for tag in sorted(by_tag)]
    shapes = ["## Shapes\n", *_shapes(document)]
    return "\n".join([_INTRODUCTION.format(version=document["info"]["version"]), *sections, *shapes])


def _operation(method: str, path: str, operation: Node, document: Node) -> Iterator[str]:
    yield f"### {operation['summary']}\n"
    yield f"`{method} {path}`\n"
    if operation.get("description"):
        yield f"{_prose(operation['description'])}\n"
    parameters = operation.get("parameters", ())
    if parameters:
        yield "| parameter | in | |\n|---|---|---|"
        for parameter in parameters:
            about = parameter.get("description") or parameter.get("schema", {}).get("description", "")
            required = " Required." if parameter.get("required") and parameter["in"] != "path" else ""
            said = f"{_type(parameter.get('schema', {}))}. {_cell(about)}{required}"
            yield f"| `{parameter['name']}` | {parameter['in']} | {said} |"
        yield ""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body (`{media_type}`): {_type(content.get('schema', {}))}\n"
        yield from _example(content.get("schema", {}), document)
    yield f"Answers: {'; '.join(_answers(operation['responses']))}.\n"


def _answers(responses: Node) -> Iterator[str]:
    failures = []
    for status, response in sorted(responses.items()):
        contents = response.get("content", {})
        if "application/problem+json" in contents:
            failures += [status] if status not in _ALWAYS else []
            continue
        shapes = [
            _type(content.get("schema", {})) if media_type == "application/json" else f"`{media_type}`"
            for media_type, content in contents.items()
        ]
        yield f"{status} {' or '.join(shapes)}".strip()
    if failures:
        yield f"failures {', '.join(failures)}"


def _example(schema: Node, document: Node) -> Iterator[str]:
    examples = _resolved(schema, document).get("examples") or ()
    for example in list(examples)[:1]:
        yield "\n".join(["```json", json.dumps(example, ensure_ascii=False, indent=2), "```", ""])


def _resolved(schema: Node, document: Node) -> Node:
    if "$ref" not in schema:
        return schema
    found: Node = document["components"]["schemas"][schema["$ref"].removeprefix(_TO_SCHEMA)]
    return found


def _shapes(document: Node) -> Iterator[str]:
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield f"### {name}\n"
        if schema.get("description"):
            yield f"{_prose(schema['description'])}\n"
        if "enum" in schema:
            yield f"One of {', '.join(f'`{value}`' for value in schema['enum'])}.\n"
        elif properties := schema.get("properties"):
            required = set(schema.get("required", ()))
            yield "| field | type | |\n|---|---|---|"
            for field, shape in properties.items():
                yield f"| `{field}` | {_type(shape)} | {_field(shape, required=field in required)} |"
            yield ""
        else:
            yield f"{_type(schema)}\n"


def _field(shape: Node, *, required: bool) -> str:
    parts = [_cell(shape.get("description", ""))]
    default = shape.get("default")
    if default not in (None, "", [], {}):
        parts.append(f"Default `{json.dumps(default)}`.")
    if required:
        parts.append("Required.")
    return " ".join(part for part in parts if part)


def _type(schema: Node) -> str:
    """A type in a few words, with links to the shapes it names."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_TO_SCHEMA)
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    for union in ("oneOf", "anyOf", "allOf"):
        if union in schema:
            return " \\| ".join(dict.fromkeys(_type(option) for option in schema[union])) or "any"
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " \\| ".join(kind)
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(kind)


def _prose(text: str) -> str:
    """A docstring as Markdown: its indentation is the code's."""
    return " ".join(text.split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|")
