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
from application.identity.sign_in_links import SignInLinks
from application.identity.token_cache import TokenCache
from application.identity.update_organization import UpdateOrganization
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
    key_validity = singleton(KeyValidity, cache=token_cache)
    key_uses = singleton(KeyUses)
    key_limits = singleton(KeyLimits, every=Platform.settings.provided.rate_limit_of_keys)
    authenticate = singleton(Authenticate, cache=token_cache, limits=key_limits, uses=key_uses)
    bootstrap_identity = singleton(BootstrapIdentity, first_key=Platform.home)
    create_api_key = singleton(CreateApiKey)
    sign_in_links = singleton(SignInLinks)
    list_api_keys = singleton(ListApiKeys, uses=key_uses)

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
    prune_audit = singleton(PruneAudit, seals=Storage.audit_seals, keys=Storage.seal_keys)
