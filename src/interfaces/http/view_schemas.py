"""Views and enums in the OpenAPI document."""

from dataclasses import replace
from enum import Enum
from inspect import getdoc
from typing import cast, get_args, get_type_hints

from litestar._openapi.schema_generation import SchemaCreator  # the type in the public plugin's signature
from litestar.openapi.spec import Discriminator, OpenAPIFormat, OpenAPIType, Schema
from litestar.params import KwargDefinition
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

from interfaces.http.view_fields import Format, OneOf


class EnumSchemas(OpenAPISchemaPlugin):
    """Schemas of enums with their own description. Litestar's have that of the field met first."""

    @staticmethod
    def is_plugin_supported_type(value: object) -> bool:
        return isinstance(value, type) and issubclass(value, Enum)

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        enum = field_definition.annotation
        schema = schema_creator.schema_registry.get_schema_for_field_definition(field_definition)
        schema.type, schema.enum = OpenAPIType.STRING, [each.value for each in enum]
        schema.title, schema.description = enum.__name__, getdoc(enum)
        return _reference(field_definition, schema_creator)


class ViewSchemas(OpenAPISchemaPlugin):
    """Schemas of views, with what `view_fields` says of their fields: descriptions, formats, names
    of unions."""

    @staticmethod
    def is_plugin_supported_field(field_definition: FieldDefinition) -> bool:
        return field_definition.is_typeddict_type or _mark(field_definition) is not None

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        match _mark(field_definition):
            case Format(name=name):
                return Schema(type=OpenAPIType.STRING, format=OpenAPIFormat(name))
            case OneOf() as union:
                return _named_union(union, field_definition, schema_creator)
            case None:
                return _view(field_definition, schema_creator)


def texts_of(view: type) -> dict[str, str | None]:
    """The descriptions of a view's fields."""
    return {name: _text(field) for name, field in _fields(view).items()}


def _view(field: FieldDefinition, creator: SchemaCreator) -> Schema:
    view = field.annotation
    schema = creator.create_component_schema(
        field,
        required=sorted(view.__required_keys__),
        property_fields={
            name: replace(each, kwarg_definition=KwargDefinition(description=_text(each)))
            for name, each in _fields(view).items()
        },
    )
    schema.description = getdoc(view)
    return schema


def _named_union(union: OneOf, field: FieldDefinition, creator: SchemaCreator) -> Schema:
    """A component, so that generators of clients give the union its name."""
    named = replace(field, kwarg_definition=KwargDefinition(schema_component_key=union.name))
    schema = creator.schema_registry.get_schema_for_field_definition(named)
    if schema.one_of is None:
        members = {str(get_args(get_type_hints(view)["type"])[0]): view for view in union.members}
        schema.title = union.name
        schema.one_of = [
            creator.for_field_definition(FieldDefinition.from_annotation(view)) for view in members.values()
        ]
        mapping = {tag: f"#/components/schemas/{view.__name__}" for tag, view in members.items()}
        schema.discriminator = Discriminator(property_name="type", mapping=mapping)
    return _reference(named, creator)


def _fields(view: type) -> dict[str, FieldDefinition]:
    hints = get_type_hints(view, include_extras=True)
    return {name: FieldDefinition.from_kwarg(hint, name) for name, hint in hints.items()}


def _text(field: FieldDefinition) -> str | None:
    return next((mark for mark in field.metadata if isinstance(mark, str)), None)


def _mark(field: FieldDefinition) -> Format | OneOf | None:
    return next((mark for mark in field.metadata if isinstance(mark, Format | OneOf)), None)


def _reference(field: FieldDefinition, creator: SchemaCreator) -> Schema:
    """A reference to a registered component; Litestar takes it for a schema."""
    return cast("Schema", creator.schema_registry.get_reference_for_field_definition(field))
