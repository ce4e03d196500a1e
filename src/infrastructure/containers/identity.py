"""Providers of organizations, API keys and the audit log."""

from dependency_injector import containers, providers

from application.audit.export_audit_events import ExportAuditEvents
from application.audit.prune_audit import PruneAudit
from application.audit.queries import ListAuditEvents
from application.audit.seal_audit import SealAudit
from application.audit.verify_audit_chain import VerifyAuditChain
from application.identity.authenticate import Authenticate
from application.identity.bootstrap_identity import BootstrapIdentity
from application.identity.create_api_key import CreateApiKey
from application.identity.create_organization import CreateOrganization
from application.identity.create_organization_key import CreateOrganizationKey
from application.identity.key_limits import KeyLimits
from application.identity.key_uses import KeyUses
from application.identity.key_validity import KeyValidity
from application.identity.queries import GetOrganization, ListApiKeys, ListOrganizations
from application.identity.revoke_api_key import RevokeApiKey
from application.identity.token_cache import TokenCache
from application.identity.update_organization import UpdateOrganization
from infrastructure.assembly import storage as storage_assembly
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.tools import Tools


class Identity(containers.DeclarativeContainer):
    get_organization: providers.Provider[GetOrganization] = providers.Singleton(
        GetOrganization, organizations=Storage.fresh_organizations
    )
    update_organization: providers.Provider[UpdateOrganization] = providers.Singleton(
        UpdateOrganization,
        organizations=Storage.fresh_organizations,
        policies=Tools.policy_checks,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    create_organization: providers.Provider[CreateOrganization] = providers.Singleton(
        CreateOrganization,
        organizations=Storage.organizations,
        policies=Tools.policy_checks,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    create_organization_key: providers.Provider[CreateOrganizationKey] = providers.Singleton(
        CreateOrganizationKey, organizations=Storage.organizations, clock=Platform.clock, ids=Platform.ids
    )
    list_organizations: providers.Provider[ListOrganizations] = providers.Singleton(
        ListOrganizations, organizations=Storage.organizations
    )
    token_cache: providers.Provider[TokenCache] = providers.Singleton(
        storage_assembly.token_cache, Platform.row_notifications
    )
    key_validity: providers.Provider[KeyValidity] = providers.Singleton(
        KeyValidity, identities=Storage.identities, cache=token_cache, clock=Platform.clock
    )
    key_uses: providers.Provider[KeyUses] = providers.Singleton(KeyUses, identities=Storage.identities)
    key_limits: providers.Provider[KeyLimits] = providers.Singleton(
        KeyLimits, every=Platform.settings.provided.rate_limit_of_keys, clock=Platform.clock
    )
    authenticate: providers.Provider[Authenticate] = providers.Singleton(
        Authenticate,
        identities=Storage.identities,
        cache=token_cache,
        limits=key_limits,
        uses=key_uses,
        clock=Platform.clock,
    )
    bootstrap_identity: providers.Provider[BootstrapIdentity] = providers.Singleton(
        BootstrapIdentity,
        identities=Storage.identities,
        first_key=Platform.home,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    create_api_key: providers.Provider[CreateApiKey] = providers.Singleton(
        CreateApiKey, identities=Storage.identities, clock=Platform.clock, ids=Platform.ids
    )
    list_api_keys: providers.Provider[ListApiKeys] = providers.Singleton(
        ListApiKeys, identities=Storage.identities, uses=key_uses
    )
    revoke_api_key: providers.Provider[RevokeApiKey] = providers.Singleton(
        RevokeApiKey, identities=Storage.identities, cache=token_cache, clock=Platform.clock, ids=Platform.ids
    )

    list_audit_events: providers.Provider[ListAuditEvents] = providers.Singleton(
        ListAuditEvents, audit_log=Storage.audit_log
    )
    export_audit_events: providers.Provider[ExportAuditEvents] = providers.Singleton(
        ExportAuditEvents, chain=Storage.audit_chain
    )
    seal_audit: providers.Provider[SealAudit] = providers.Singleton(
        SealAudit, seals=Storage.audit_seals, keys=Storage.seal_keys, clock=Platform.clock
    )
    verify_audit_chain: providers.Provider[VerifyAuditChain] = providers.Singleton(
        VerifyAuditChain,
        chain=Storage.audit_chain,
        entries=Storage.audit_seals,
        sealing=seal_audit,
        keys=Storage.seal_keys,
        clock=Platform.clock,
    )
    prune_audit: providers.Provider[PruneAudit] = providers.Singleton(
        PruneAudit, seals=Storage.audit_seals, keys=Storage.seal_keys, clock=Platform.clock, ids=Platform.ids
    )
