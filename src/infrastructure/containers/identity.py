"""Providers of organizations, API keys, people and the audit log."""

from dependency_injector import containers, providers

from application.approvals.consents import Consents
from application.approvals.deciders import Deciders
from application.audit.expired_chain import ExpiredChain
from application.audit.export_audit_events import ExportAuditEvents
from application.audit.ports import AuditArchive
from application.audit.prune_audit import PruneAudit
from application.audit.queries import ListAuditEvents
from application.audit.seal_audit import SealAudit
from application.audit.verify_audit_chain import VerifyAuditChain
from application.identity.admit_person import AdmitPerson
from application.identity.assignable_roles import AssignableRoles
from application.identity.authenticate import Authenticate
from application.identity.authenticate_person import AuthenticatePerson
from application.identity.begin_console_session import BeginConsoleSession
from application.identity.begin_impersonation import BeginImpersonation
from application.identity.begin_sign_in import BeginSignIn
from application.identity.bootstrap_identity import BootstrapIdentity
from application.identity.check_identity_provider import CheckIdentityProvider
from application.identity.continue_console_session import ContinueConsoleSession
from application.identity.create_api_key import CreateApiKey
from application.identity.create_identity_provider import CreateIdentityProvider
from application.identity.create_organization import CreateOrganization
from application.identity.create_organization_key import CreateOrganizationKey
from application.identity.delete_identity_provider import DeleteIdentityProvider
from application.identity.describe_caller import DescribeCaller
from application.identity.impersonations import Impersonations
from application.identity.key_limits import KeyLimits
from application.identity.key_uses import KeyUses
from application.identity.key_validity import KeyValidity
from application.identity.ports import IdentityProviderClient, TokenVerifier
from application.identity.queries import (
    GetIdentityProvider,
    GetOrganization,
    GetUser,
    ListApiKeys,
    ListIdentityProviders,
    ListImpersonations,
    ListOfferedProviders,
    ListOrganizations,
    ListSessions,
    ListTeams,
    ListUsers,
)
from application.identity.session_of_user import SessionOfUser
from application.identity.sign_in_links import SignInLinks
from application.identity.sign_out_address import SignOutAddress
from application.identity.token_cache import TokenCache
from application.identity.update_identity_provider import UpdateIdentityProvider
from application.identity.update_organization import UpdateOrganization
from application.roles.create_custom_role import CreateCustomRole
from application.roles.delete_custom_role import DeleteCustomRole
from application.roles.queries import GetCustomRole, ListCustomRoles
from application.roles.update_custom_role import UpdateCustomRole
from infrastructure.assembly import archive as archive_assembly
from infrastructure.assembly import identity as identity_assembly
from infrastructure.assembly import storage as storage_assembly
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.tools import Tools
from infrastructure.containers.wiring import Singletons

singleton = Singletons(Platform, Storage)


class Identity(containers.DeclarativeContainer):
    get_organization = singleton(GetOrganization, organizations=Storage.fresh_organizations)
    update_organization = singleton(
        UpdateOrganization, organizations=Storage.fresh_organizations, policies=Tools.policy_checks
    )
    create_organization = singleton(CreateOrganization, policies=Tools.policy_checks)
    create_organization_key = singleton(CreateOrganizationKey)
    list_organizations = singleton(ListOrganizations)
    token_cache: providers.Provider[TokenCache] = singleton(storage_assembly.token_cache, Platform.row_notifications)
    key_uses = singleton(KeyUses)
    key_limits = singleton(KeyLimits, every=Platform.settings.provided.rate_limit_of_keys)
    acting_as_others = singleton(Impersonations, limits=key_limits)
    begin_impersonation = singleton(BeginImpersonation, allowed=acting_as_others)
    key_validity: providers.Provider[KeyValidity] = singleton(
        storage_assembly.key_validity, Platform.row_notifications, cache=token_cache, impersonations=acting_as_others
    )
    identity_client: providers.Provider[IdentityProviderClient] = singleton(
        identity_assembly.documents, http=Tools.workflow_http
    )
    signed_tokens: providers.Provider[TokenVerifier] = singleton(
        identity_assembly.signed_tokens, documents=identity_client
    )
    deciders = singleton(Deciders, people=Tools.acting_people)
    consents = singleton(Consents)
    admit_person = singleton(AdmitPerson, group_names=Storage.groups, claimed_groups=Storage.organization_groups)
    authenticate = singleton(
        Authenticate,
        cache=token_cache,
        limits=key_limits,
        uses=key_uses,
        impersonations=acting_as_others,
        people=singleton(
            AuthenticatePerson, tokens=signed_tokens, admit_person=admit_person, cache=token_cache, limits=key_limits
        ),
    )
    begin_console_session = singleton(BeginConsoleSession)
    continue_console_session = singleton(ContinueConsoleSession)
    list_sessions = singleton(ListSessions)
    list_impersonations = singleton(ListImpersonations)
    session_of_user = singleton(SessionOfUser, limits=key_limits)
    begin_sign_in = singleton(BeginSignIn, client=identity_client)
    sign_out_address = singleton(SignOutAddress, client=identity_client)
    assignable_roles = singleton(AssignableRoles)
    create_identity_provider = singleton(
        CreateIdentityProvider,
        assignable=assignable_roles,
        providers=Storage.identity_providers,
        outbound=Platform.egress_policy,
    )
    update_identity_provider = singleton(
        UpdateIdentityProvider,
        assignable=assignable_roles,
        providers=Storage.identity_providers,
        outbound=Platform.egress_policy,
        cache=token_cache,
    )
    delete_identity_provider = singleton(
        DeleteIdentityProvider, providers=Storage.identity_providers, cache=token_cache
    )
    check_identity_provider = singleton(
        CheckIdentityProvider, providers=Storage.identity_providers, client=identity_client
    )
    get_identity_provider = singleton(GetIdentityProvider, providers=Storage.identity_providers)
    list_identity_providers = singleton(ListIdentityProviders, providers=Storage.identity_providers)
    list_offered_providers = singleton(ListOfferedProviders)
    describe_caller = singleton(DescribeCaller)
    get_user = singleton(GetUser)
    list_users = singleton(ListUsers)
    bootstrap_identity = singleton(BootstrapIdentity, first_key=Platform.home)
    create_api_key = singleton(CreateApiKey, assignable=assignable_roles)
    create_custom_role = singleton(CreateCustomRole)
    update_custom_role = singleton(UpdateCustomRole, cache=token_cache)
    delete_custom_role = singleton(DeleteCustomRole)
    list_custom_roles = singleton(ListCustomRoles)
    get_custom_role = singleton(GetCustomRole)
    sign_in_links = singleton(SignInLinks)
    list_api_keys = singleton(ListApiKeys, uses=key_uses)
    list_teams = singleton(ListTeams, memberships=Storage.organization_groups)

    list_audit_events = singleton(ListAuditEvents)
    export_audit_events = singleton(ExportAuditEvents, chain=Storage.audit_chain)
    seal_audit = singleton(SealAudit, seals=Storage.audit_seals, keys=Storage.seal_keys)
    verify_audit_chain = singleton(
        VerifyAuditChain,
        chain=Storage.audit_chain,
        entries=Storage.audit_seals,
        sealing=seal_audit,
        keys=Storage.seal_keys,
    )
    audit_archive: providers.Provider[AuditArchive | None] = singleton(
        archive_assembly.audit_archive, Platform.settings
    )
    expired_chain = singleton(ExpiredChain, chain=Storage.audit_chain, archive=audit_archive)
    prune_audit = singleton(
        PruneAudit,
        seals=Storage.audit_seals,
        keys=Storage.seal_keys,
        archiving=singleton(archive_assembly.archiving, Platform.settings, expired=expired_chain),
    )
