"""The people and groups of one directory, as the SCIM library reads and writes them."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from scim2_models import (
    InvalidValueException,
    NotFoundException,
    NotImplementedException,
    PreconditionFailedException,
    Resource,
    ResourceType,
    ResponseParameters,
    SCIMException,
    SearchRequest,
    UniquenessException,
)
from scim2_server.storage import AsyncScimStorage, SearchPage

from application.provisioning.create_group import CreateGroup, CreateGroupCommand
from application.provisioning.delete_group import DeleteGroup, DeleteGroupCommand
from application.provisioning.deprovision_user import DeprovisionUser, DeprovisionUserCommand
from application.provisioning.provision_user import ProvisionUser, ProvisionUserCommand
from application.provisioning.queries import FindGroups, FindProvisionedUsers
from application.provisioning.update_group import UpdateGroup, UpdateGroupCommand
from application.provisioning.update_provisioned_user import UpdateProvisionedUser, UpdateProvisionedUserCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import ProvisionedUser
from domain.ids import GroupId, UserId
from interfaces.http.scim.resources import (
    Group,
    User,
    entry_of,
    group_resource,
    members_of,
    require_short_names,
    user_resource,
    version_in,
    was_active_in,
)

_BY_USER_NAME = re.compile(r'\s*userName\s+eq\s+"([^"\\]+)"\s*', re.IGNORECASE)
_EXCEPTIONS: dict[ErrorKind, type[SCIMException]] = {
    ErrorKind.CONFLICT: UniquenessException,
    ErrorKind.NOT_FOUND: NotFoundException,
    ErrorKind.PRECONDITION: PreconditionFailedException,
    ErrorKind.INVALID: InvalidValueException,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryUseCases:
    """What a directory may do."""

    provision_user: ProvisionUser
    update_provisioned_user: UpdateProvisionedUser
    deprovision_user: DeprovisionUser
    find_provisioned_users: FindProvisionedUsers
    create_group: CreateGroup
    update_group: UpdateGroup
    delete_group: DeleteGroup
    find_groups: FindGroups


class DirectoryStorage(AsyncScimStorage):
    """Lists are in the order of creation, and filtered in memory; a filter for one user name reads
    one row."""

    def __init__(self, provider: IdentityProvider, use_cases: DirectoryUseCases) -> None:
        self._provider = provider
        self._do = use_cases

    async def get(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        response_parameters: ResponseParameters[Any] | None = None,
    ) -> Resource[Any]:
        with _scim_errors():
            if resource_type.name == "User":
                user = await self._do.find_provisioned_users.execute(self._provider, UserId(resource_id))
                return user_resource(user)
            return group_resource(await self._do.find_groups.execute(self._provider, GroupId(resource_id)))

    async def search(
        self, resource_types: list[ResourceType], search_request: SearchRequest[Any], *, position: Any = None
    ) -> SearchPage:
        if len(resource_types) != 1:
            raise NotImplementedException(detail="Search below /Users or /Groups.")
        wanted = search_request.filter
        resources: Sequence[Resource[Any]]
        if resource_types[0].name == "User":
            resources = [user_resource(user) for user in await self._users(None if wanted is None else str(wanted))]
        else:
            resources = [group_resource(group) for group in await self._do.find_groups.all(self._provider)]
        found = [each for each in resources if wanted is None or wanted.match(each)]
        start = search_request.start_index_0 or 0
        stop = None if search_request.count is None else start + search_request.count
        return SearchPage(len(found), found[start:stop])

    async def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        with _scim_errors():
            if isinstance(resource, User):
                command = ProvisionUserCommand(
                    provider=self._provider, entry=entry_of(resource), active=resource.active is not False
                )
                return user_resource(await self._do.provision_user.execute(command))
            group = _group(resource)
            return group_resource(
                await self._do.create_group.execute(
                    CreateGroupCommand(
                        provider=self._provider,
                        name=group.display_name or "",
                        external_id=group.external_id,
                        members=members_of(group),
                    )
                )
            )

    async def update(
        self, resource_type: ResourceType, resource: Resource[Any], *, expected_version: str | None = None
    ) -> Resource[Any]:
        with _scim_errors():
            if isinstance(resource, User):
                user = UpdateProvisionedUserCommand(
                    provider=self._provider,
                    user_id=UserId(resource.id or ""),
                    entry=entry_of(resource),
                    active=resource.active is not False,
                    expected_version=version_in(expected_version),
                    expected_active=was_active_in(expected_version),
                )
                return user_resource(await self._do.update_provisioned_user.execute(user))
            group = _group(resource)
            command = UpdateGroupCommand(
                provider=self._provider,
                group_id=GroupId(group.id or ""),
                name=group.display_name or "",
                external_id=group.external_id,
                members=members_of(group),
                expected_version=version_in(expected_version),
            )
            return group_resource(await self._do.update_group.execute(command))

    async def delete(
        self, resource_type: ResourceType, resource_id: str, *, expected_version: str | None = None
    ) -> None:
        with _scim_errors():
            if resource_type.name == "User":
                await self._do.deprovision_user.execute(
                    DeprovisionUserCommand(
                        provider=self._provider,
                        user_id=UserId(resource_id),
                        expected_version=version_in(expected_version),
                    )
                )
                return
            command = DeleteGroupCommand(provider=self._provider, group_id=GroupId(resource_id))
            await self._do.delete_group.execute(command)

    async def _users(self, wanted: str | None) -> tuple[ProvisionedUser, ...]:
        by_name = None if wanted is None else _BY_USER_NAME.fullmatch(wanted)
        if by_name is not None:
            return await self._do.find_provisioned_users.named(self._provider, by_name.group(1))
        return await self._do.find_provisioned_users.all(self._provider)


def _group(resource: Resource[Any]) -> Group:
    if not isinstance(resource, Group):
        raise NotImplementedException(detail="Only users and groups are stored.")
    require_short_names(resource)
    return resource


@contextmanager
def _scim_errors() -> Iterator[None]:
    """Errors in the shape of SCIM (RFC 7644, section 3.12)."""
    try:
        yield
    except ServiceError as error:
        _raise_scim(error)


def _raise_scim(error: ServiceError) -> NoReturn:
    kind = _EXCEPTIONS.get(error.kind)
    if kind is None:
        raise error
    raise kind(detail=error.detail) from error
