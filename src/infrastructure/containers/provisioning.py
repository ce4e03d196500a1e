"""Providers of groups, and of people whom directories manage by SCIM."""

from dependency_injector import containers, providers

from application.groups.create_organization_group import CreateOrganizationGroup
from application.groups.delete_organization_group import DeleteOrganizationGroup
from application.groups.group_checks import GroupChecks
from application.groups.queries import GetGroup, ListGroups
from application.groups.update_organization_group import UpdateOrganizationGroup
from application.provisioning.access import DirectoryAccess
from application.provisioning.authenticate_directory import AuthenticateDirectory
from application.provisioning.create_group import CreateGroup
from application.provisioning.create_scim_token import CreateScimToken
from application.provisioning.delete_group import DeleteGroup
from application.provisioning.deprovision_user import DeprovisionUser
from application.provisioning.provision_user import ProvisionUser
from application.provisioning.queries import FindGroups, FindProvisionedUsers
from application.provisioning.revoke_scim_token import RevokeScimToken
from application.provisioning.update_group import UpdateGroup
from application.provisioning.update_provisioned_user import UpdateProvisionedUser
from infrastructure.containers.identity import Identity
from infrastructure.containers.maintenance import Maintenance
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.wiring import Singletons

singleton = Singletons(Platform, Storage)


class Provisioning(containers.DeclarativeContainer):
    create_scim_token = singleton(
        CreateScimToken, providers=Storage.identity_providers, scim_tokens=Storage.provisioned
    )
    revoke_scim_token = singleton(
        RevokeScimToken, providers=Storage.identity_providers, scim_tokens=Storage.provisioned
    )
    authenticate_directory = singleton(
        AuthenticateDirectory, scim_tokens=Storage.provisioned, limits=Identity.key_limits
    )
    directory_access: providers.Provider[DirectoryAccess] = singleton(
        DirectoryAccess, update_user=Maintenance.update_user, access=Storage.provisioned
    )
    provision_user = singleton(ProvisionUser, directory_access=directory_access)
    update_provisioned_user = singleton(UpdateProvisionedUser, directory_access=directory_access)
    deprovision_user = singleton(DeprovisionUser, access=Storage.provisioned, directory_access=directory_access)
    find_provisioned_users = singleton(FindProvisionedUsers)
    create_group = singleton(CreateGroup)
    update_group = singleton(UpdateGroup)
    delete_group = singleton(DeleteGroup)
    find_groups = singleton(FindGroups)
    list_groups = singleton(ListGroups)
    get_group = singleton(GetGroup, list_groups=list_groups)
    group_checks = singleton(GroupChecks)
    create_organization_group = singleton(CreateOrganizationGroup, checks=group_checks)
    update_organization_group = singleton(UpdateOrganizationGroup, checks=group_checks)
    delete_organization_group = singleton(DeleteOrganizationGroup, checks=group_checks)
