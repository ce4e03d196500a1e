"""People and groups as SCIM resources. Attributes that are not here are ignored and not stored."""

import re
from typing import Annotated, Any, ClassVar

from pydantic import Field
from scim2_models import (
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Filter,
    Meta,
    Mutability,
    Patch,
    Reference,
    Required,
    Resource,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)
from scim2_models.urn import URN

from domain.errors import invalid
from domain.identity.provisioning import DirectoryEntry, ProvisionedUser
from domain.identity.provisioning import Group as StoredGroup
from domain.ids import UserId
from domain.json_value import JsonObject

MAX_RESULTS = 200
_ATTRIBUTES = ("name", "displayName", "emails")
_STATES_ACTIVE = "statesActive"
"""Whether the directory states `active`; without it a person is active."""
_VERSION = re.compile(r'W/"(\d+)(-inactive)?"')
_MAX_TEXT = 320
_MAX_IDENTIFIER = 255
"""As the subject of a token (OpenID Connect Core 1.0, section 2)."""
_MAX_EMAILS = 20


class Name(ComplexAttribute):
    """Parts of a person's name."""

    formatted: str | None = None
    family_name: str | None = None
    given_name: str | None = None


class Email(ComplexAttribute):
    """An e-mail address."""

    value: str | None = None
    type: str | None = None
    primary: bool | None = None


class User(Resource[Any]):
    """A person."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    name: Name | None = None
    Name: ClassVar[type[ComplexAttribute]] = Name
    display_name: str | None = None
    active: bool | None = None
    emails: list[Email] | None = None
    Emails: ClassVar[type[ComplexAttribute]] = Email


class Member(ComplexAttribute):
    """A user in a group."""

    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    ref: Annotated[Reference["User"] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )


class Group(Resource[Any]):
    """A group of people."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true] = None
    members: list[Member] | None = None
    Members: ClassVar[type[ComplexAttribute]] = Member


def scim_provider() -> ScimProvider:
    """What `/ServiceProviderConfig`, `/ResourceTypes` and `/Schemas` say. Directories send
    attributes that are not stored, and Microsoft Entra names members to remove in `value`."""
    config = ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=MAX_RESULTS),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=False),
        etag=ETag(supported=True),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="SCIM token",
                description="The token of an identity provider: `dragoman idp scim-token NAME`.",
            )
        ],
    )
    policy = ScimPolicy(
        unknown=ScimPolicy.Unknown.ignore,
        remove_value_as_filter=ScimPolicy.RemoveValue.apply,
        unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
    )
    return ScimProvider(models=[User, Group], config=config, policy=policy)


def entry_of(user: User) -> DirectoryEntry:
    """What is stored of a person. Raises INVALID `too_long`."""
    _require_short(userName=user.user_name, externalId=user.external_id, displayName=user.display_name)
    if len(user.emails or ()) > _MAX_EMAILS:
        raise invalid("too_long", f"A person has at most {_MAX_EMAILS} e-mail addresses.")
    for given in user.emails or ():
        _require_short(_MAX_TEXT, emails=given.value)
    document: JsonObject = user.model_dump()
    attributes = {name: document[name] for name in _ATTRIBUTES if document.get(name) is not None}
    if user.active is not None:
        attributes[_STATES_ACTIVE] = True
    name = user.name or Name()
    parts = [part for part in (name.given_name, name.family_name) if part]
    emails = sorted(user.emails or [], key=lambda email: not email.primary)
    return DirectoryEntry(
        user_name=user.user_name or "",
        external_id=user.external_id,
        attributes=attributes,
        name=_text(user.display_name or name.formatted or " ".join(parts)),
        email=_text(next((email.value for email in emails if email.value), None)),
    )


def user_resource(user: ProvisionedUser) -> User:
    entry, mark = user.entry, "" if user.active else "-inactive"
    attributes = {**entry.attributes}
    states_active = attributes.pop(_STATES_ACTIVE, False)
    return User.model_validate(
        {
            "schemas": [str(User.__schema__)],
            "id": user.user.id,
            "externalId": entry.external_id,
            "userName": entry.user_name,
            "active": True if user.active and states_active else None if user.active else False,
            **attributes,
            "meta": Meta(
                resource_type="User",
                created=user.created_at,
                last_modified=user.changed_at,
                version=f'W/"{user.version}{mark}"',
            ),
        }
    )


def group_resource(group: StoredGroup) -> Group:
    members = [{"value": member, "$ref": f"Users/{member}"} for member in group.members]
    return Group.model_validate(
        {
            "schemas": [str(Group.__schema__)],
            "id": group.id,
            "externalId": group.external_id,
            "displayName": group.name,
            "members": members or None,
            "meta": Meta(
                resource_type="Group",
                created=group.created_at,
                last_modified=group.changed_at,
                version=f'W/"{group.version}"',
            ),
        }
    )


def require_short_names(group: Group) -> None:
    """Raises INVALID `too_long`."""
    _require_short(displayName=group.display_name, externalId=group.external_id)


def members_of(group: Group) -> tuple[UserId, ...]:
    return tuple(UserId(member.value) for member in group.members or () if member.value)


def version_in(etag: str | None) -> int | None:
    """The version that an ETag of these resources names."""
    found = _VERSION.match(etag or "")
    return None if found is None else int(found.group(1))


def was_active_in(etag: str | None) -> bool | None:
    """Whether the person was active whom an ETag of these resources names."""
    found = _VERSION.match(etag or "")
    return None if found is None else found.group(2) is None


def _require_short(at_most: int = _MAX_IDENTIFIER, **values: str | None) -> None:
    for name, value in values.items():
        if len(value or "") > at_most:
            raise invalid("too_long", f"{name} has at most {at_most} characters.")


def _text(value: str | None) -> str | None:
    """Shown to admins: one printable line, cut."""
    return "".join(character for character in value or "" if character.isprintable())[:_MAX_TEXT] or None
