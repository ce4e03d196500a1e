"""The OpenAPI 3.1 document at `/schema`: bodies as strict as they are, with examples; operations by handler name."""

from collections.abc import Mapping

from litestar import get
from litestar._openapi.schema_generation import SchemaCreator  # the type in the public plugin's signature
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.openapi.spec import Components, OpenAPIType, Schema, SecurityScheme
from litestar.plugins.pydantic import PydanticSchemaPlugin
from litestar.response import Redirect
from litestar.types import Method
from litestar.types.internal_types import PathParameterDefinition
from litestar.typing import FieldDefinition

from interfaces.http.bodies import Body

SECURITY_SCHEME = "apiKey"


def openapi_config(version: str) -> OpenAPIConfig:
    """The document's frame. Plain JSON and YAML: a viewer would be fetched from elsewhere."""
    return OpenAPIConfig(
        title="Dragoman",
        version=version,
        summary="Runs LLM agents and executes their tools under policy.",
        path="/schema",
        render_plugins=[JsonRenderPlugin(path=["/", "/openapi.json"]), YamlRenderPlugin()],
        components=Components(
            security_schemes={
                SECURITY_SCHEME: SecurityScheme(type="http", scheme="bearer", description="An API key: `dgm_…`.")
            }
        ),
        operation_id_creator=_operation_id,
        use_handler_docstrings=True,
    )


class BodySchemas(PydanticSchemaPlugin):
    """Adds to the schemas of bodies what Litestar leaves out: examples, and that unknown fields are refused."""

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        """The schema of a pydantic model."""
        schema = super().to_openapi_schema(field_definition, schema_creator)
        model = field_definition.annotation
        if isinstance(model, type) and issubclass(model, Body):
            schema.additional_properties = False
            schema.description = model.__doc__
            schema.examples = list(model.examples) or None
            own = model.model_json_schema(by_alias=True)["properties"]
            for name, property_schema in (schema.properties or {}).items():
                if isinstance(property_schema, Schema):
                    _mend_container(property_schema, own[name])
        return schema


def _mend_container(schema: Schema, own: Mapping[str, object]) -> None:
    """What Litestar makes of annotated tuples (an array of anything) and mappings (an array), as pydantic has it: clients are
    generated from this."""
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
    """Whoever comes without a path is shown what there is."""
    return Redirect("/schema", status_code=303)


def _operation_id(handler: HTTPRouteHandler, _: Method, path: list[str | PathParameterDefinition]) -> str:
    """The handler's name; a handler that also has a path below a thread says so there."""
    on_thread = len(handler.paths) > 1 and "threads" in path
    return f"{handler.handler_name}_on_thread" if on_thread else handler.handler_name
