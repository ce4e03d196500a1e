"""The OpenAPI 3.1 document at `/schema`: strict bodies with examples; operations named after
handlers."""

from collections.abc import Mapping
from inspect import getdoc

from litestar import get
from litestar._openapi.schema_generation import SchemaCreator  # the type in the public plugin's signature
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.openapi.spec import (
    Components,
    OpenAPIType,
    Reference,
    Schema,
    SecurityScheme,
    Tag,
)
from litestar.plugins.pydantic import PydanticSchemaPlugin
from litestar.response import Redirect
from litestar.types import Method
from litestar.types.internal_types import PathParameterDefinition
from litestar.typing import FieldDefinition

from interfaces.console_paths import PATH
from interfaces.http.bodies import Body
from interfaces.http.view_schemas import texts_of

SECURITY_SCHEME = "apiKey"


def openapi_config(version: str, *, tags: list[Tag]) -> OpenAPIConfig:
    """The frame of the document. Plain JSON and YAML; the explorer at `/docs` shows it."""
    return OpenAPIConfig(
        title="Dragoman",
        version=version,
        summary="Runs LLM agents and executes their tools under policy.",
        path="/schema",
        render_plugins=[JsonRenderPlugin(path=["/", "/openapi.json"]), YamlRenderPlugin()],
        components=Components(
            security_schemes={
                SECURITY_SCHEME: SecurityScheme(
                    type="http", scheme="bearer", description="An API key: `dgm_…`, or a token of an identity provider."
                )
            }
        ),
        operation_id_creator=_operation_id,
        use_handler_docstrings=True,
        tags=tags,
    )


class BodySchemas(PydanticSchemaPlugin):
    """Adds what Litestar omits from the schemas of bodies: examples, the rejection of unknown
    fields, and descriptions of fields that are those of the view in `shown_as`."""

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        schema = super().to_openapi_schema(field_definition, schema_creator)
        model = field_definition.annotation
        if isinstance(model, type) and issubclass(model, Body):
            schema.additional_properties = False
            schema.description = getdoc(model)
            schema.examples = list(model.examples) or None
            own = model.model_json_schema(by_alias=True)["properties"]
            texts = {} if model.shown_as is None else texts_of(model.shown_as)
            properties = schema.properties or {}
            for name, property_schema in properties.items():
                text = texts.get(name)
                if isinstance(property_schema, Reference):
                    properties[name] = Schema(all_of=[property_schema], description=text)
                    continue
                property_schema.description = property_schema.description or text
                _mend_container(property_schema, own[name])
        return schema


def _mend_container(schema: Schema, own: Mapping[str, object]) -> None:
    """Replace Litestar's schemas of annotated tuples and mappings by pydantic's, because clients
    are generated from them."""
    parts = schema.items.one_of if isinstance(schema.items, Schema) else None
    if not parts:
        return
    if own.get("type") == "object":
        schema.type = OpenAPIType.OBJECT
        schema.additional_properties, schema.items = parts[-1], None
        schema.max_properties, schema.max_length = schema.max_length, None
    elif own.get("type") == "array" and parts[-1] == Schema():
        schema.items = parts[0]


@get("/", include_in_schema=False, status_code=303, sync_to_thread=False)
def front_door() -> Redirect:
    """Redirect from `/` to the console, which links to the API explorer."""
    return Redirect(PATH, status_code=303)


@get("/openapi.json", include_in_schema=False, status_code=303, sync_to_thread=False)
def usual_address_of_document() -> Redirect:
    """Redirect from where many tools look for the document."""
    return Redirect("/schema/openapi.json", status_code=303)


def _operation_id(handler: HTTPRouteHandler, _: Method, path: list[str | PathParameterDefinition]) -> str:
    """The handler's name, with a suffix for its second path below a thread."""
    on_thread = len(handler.paths) > 1 and "threads" in path
    return f"{handler.handler_name}_on_thread" if on_thread else handler.handler_name
