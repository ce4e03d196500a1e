"""Builds connections to MCP servers, their installer and their authorization."""

import os
import shutil
import socket
import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from application.gateway.subscriptions.subscribers import Subscribers
from application.identity.ports import IdentityProviderDirectory, OrganizationStore
from application.mcp.account_secrets import PersonSecretStore
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpCatalogStore, McpServerStore, ServerStatus
from application.mcp.server_certificates import ServerCertificates
from application.mcp.tell_missing_grants import TellMissingGrants
from application.secrets.ports import SecretStore
from application.system.ports import Clock, IdSource
from application.system.rates import Rates
from application.system.shared_permits import SharedPermits
from domain.errors import Violation
from domain.json_value import JsonObject
from domain.mcp.server import McpServer
from domain.mcp.server_tls import ServerTls
from infrastructure.confinement.given_group import GivenGroup
from infrastructure.confinement.grants import Grants
from infrastructure.confinement.sandbox import Sandbox, SandboxMode, probe_machine
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import Proxies
from infrastructure.mcp.containers.engine import ContainerEngine
from infrastructure.mcp.containers.engine_places import engine_socket
from infrastructure.mcp.containers.lazy_engine import LazyContainerEngine
from infrastructure.mcp.containers.marks import ContainerMarks
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.installer import LocalMcpInstaller
from infrastructure.mcp.install.launches import InstalledLaunches
from infrastructure.mcp.install.node import NodeRuntime, packaged_node
from infrastructure.mcp.install.npm import NpmPackages
from infrastructure.mcp.install.oci_images import OciImages
from infrastructure.mcp.install.python_packages import PythonPackages
from infrastructure.mcp.install.server_confinement import ServerConfinement
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.mcp.lazy_registries import LazyRegistries, OpenRegistries
from infrastructure.mcp.oauth.lazy_oauth import LazyOAuth, OpenOAuth
from infrastructure.mcp.state_reporter import StateReporter
from infrastructure.mcp.transports.launcher import LAUNCHER
from infrastructure.mcp.transports.process_limits import parse_process_limits
from infrastructure.mcp.wrappers.announced_connections import Announcements
from infrastructure.mcp.wrappers.announced_news import AnnouncedNews
from infrastructure.mcp.wrappers.bounded_contents import BoundedContents
from infrastructure.mcp.wrappers.guarded_connections import CallLimits, guarded
from infrastructure.mcp.wrappers.lazy_connections import ClosableConnections, LazyMcpConnections
from infrastructure.mcp.wrappers.shared_breakers import SharedBreakers
from infrastructure.mcp.wrappers.supervised_connections import SupervisedConnections
from infrastructure.metrics.server_states import ServerStates
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.mcp.oauth_store import SqlOAuthStore
from infrastructure.persistence.mcp.server_reports import SqlServerReports
from infrastructure.runtime.home import Home
from infrastructure.runtime.public_address import ListeningAddress
from infrastructure.secrets.external_secrets import ExternalSecrets
from infrastructure.settings import Settings, base_process_environment, installer_environment

REFRESH_TIMEOUT_S = 30.0


def oauth(
    *,
    clock: Clock,
    servers: McpServerStore,
    secrets: SecretStore,
    external_secrets: ExternalSecrets,
    store: SqlOAuthStore,
    identity_providers: IdentityProviderDirectory,
    known_secrets: KnownSecrets,
    egress: EgressPolicy,
    proxies: Proxies,
    address: ListeningAddress,
    rows: RowNotifications,
) -> LazyOAuth:
    def load() -> OpenOAuth:
        from infrastructure.mcp.oauth.parts import OAuthParts
        from infrastructure.mcp.secret_values import SecretValues
        from infrastructure.mcp.transports.remote import RemoteClient

        return OAuthParts(
            remote=RemoteClient(egress=egress, proxies=proxies),
            store=store,
            secrets=SecretValues(secrets=secrets, known=known_secrets, forget=external_secrets.forget),
            find_server=servers.get,
            find_provider=identity_providers.named,
            address=address,
            clock=clock,
            is_told=rows.fresh,
        )

    lazy = LazyOAuth(load)
    rows.listen(lazy.forget_organization, "oauth_grant", "person_grant")
    # People may belong to any organization. This process tells of them as of keys.
    rows.watch(lambda _: lazy.forget_organization(None), "user_account", "identity_provider", "api_key")
    return lazy


def server_certificates(*, secrets: SecretStore, clock: Clock) -> ServerCertificates:
    def read(tls: ServerTls, private_key: str | None, now: datetime) -> ServerTls | list[Violation]:
        from infrastructure.mcp.transports.certificates import read_certificates

        return read_certificates(tls, private_key, now)

    def fault_of_key(pem: str) -> str | None:
        from infrastructure.identity.signing_keys import fault_of_signing_key

        return fault_of_signing_key(pem)

    return ServerCertificates(secrets=secrets, read=read, fault_of_key=fault_of_key, clock=clock)


def _trusted_cards(keys_file: Path | None) -> Callable[[JsonObject], bool] | None:
    if keys_file is None:
        return None

    def is_trusted(card: JsonObject) -> bool:
        from infrastructure.identity.card_signatures import is_trusted_card

        return is_trusted_card(card, keys_file)

    return is_trusted


def registries(settings: Settings, *, egress: EgressPolicy, proxies: Proxies, clock: Clock) -> LazyRegistries:
    def load() -> OpenRegistries:
        from infrastructure.mcp.registries import HttpMcpRegistries
        from infrastructure.mcp.transports.remote import RemoteClient

        remote = RemoteClient(egress=egress, proxies=proxies)
        return HttpMcpRegistries(urls=settings.registry_urls, remote=remote, clock=clock)

    return LazyRegistries(load, names=tuple(settings.registry_urls))


def connections(
    *,
    settings: Settings,
    switch: McpSwitch,
    clock: Clock,
    ids: IdSource,
    rates: Rates,
    permits: SharedPermits | None,
    breakers: SharedBreakers | None,
    catalogs: McpCatalogStore,
    organizations: OrganizationStore,
    secrets: SecretStore,
    external_secrets: ExternalSecrets,
    known_secrets: KnownSecrets,
    person_secrets: PersonSecretStore,
    egress: EgressPolicy,
    proxies: Proxies,
    oauth: LazyOAuth,
    launches: InstalledLaunches,
    installer: LocalMcpInstaller,
    confinement: ServerConfinement,
    engine: ContainerEngine,
    marks: ContainerMarks,
    directories: InstallDirectories,
    node: NodeRuntime,
    reporter: StateReporter | None,
    states: ServerStates,
    missing_grants: TellMissingGrants,
    subscribers: Subscribers,
    announcements: Announcements,
    rows: RowNotifications,
) -> SupervisedConnections:
    def changed(server: McpServer, status: ServerStatus) -> None:
        states.changed(server, status)
        missing_grants.changed(server, status)
        if reporter is not None:
            reporter.changed(server, status)

    def load() -> ClosableConnections:
        from infrastructure.mcp.connections.pool import SdkMcpConnections
        from infrastructure.mcp.install.restoring import RestoredInstallations
        from infrastructure.mcp.install.server_containers import ServerContainers
        from infrastructure.mcp.secret_values import SecretValues
        from infrastructure.mcp.transports.permitted_transports import PermittedTransports
        from infrastructure.mcp.transports.remote import RemoteClient
        from infrastructure.mcp.transports.server_contexts import ServerContexts
        from infrastructure.mcp.transports.server_transports import ServerTransports

        values = SecretValues(
            secrets=secrets, known=known_secrets, person_secrets=person_secrets, forget=external_secrets.forget
        )
        limits = parse_process_limits(settings.mcp_process_limits)
        contained = ServerContainers(
            engine=engine,
            marks=marks,
            directories=directories,
            limits=limits,
            cpus=settings.mcp_container_cpus,
            ports=settings.allowed_ports,
        )
        return SdkMcpConnections(
            transports=PermittedTransports(
                ServerTransports(
                    remote=RemoteClient(egress=egress, proxies=proxies),
                    secrets=values,
                    credentials=oauth.get().credentials,
                    tls=ServerContexts(secrets=values, clock=clock),
                    environment={**base_process_environment(), "PATH": node.search_path},
                    launch=launches.of,
                    restored=RestoredInstallations(installer.restore),
                    confine=confinement.of_server,
                    contain=contained.starting,
                    egress=egress,
                    limits=limits,
                    is_trusted_card=_trusted_cards(settings.a2a_trusted_keys),
                ),
                switch=switch,
            ),
            known_secrets=known_secrets,
            person_secrets=person_secrets,
            clock=clock,
            client_version=version("dragoman"),
            on_tools_changed=supervised.tools_changed,
            on_lost=supervised.lost,
            on_status=changed,
            on_listed=news.listed,
            max_processes=settings.mcp_max_processes,
            permits=permits,
        )

    async def relist(server: McpServer) -> None:
        scope = ConnectionScope(organization_id=server.organization_id, person_id=server.person_id)
        await catalog_updater.relist(server, scope, timeout_s=REFRESH_TIMEOUT_S)

    news = AnnouncedNews(subscribers.listed, announcements=announcements)
    owned = LazyMcpConnections(load)
    # Who is not active has no secrets. This process tells of people as of keys.
    rows.watch(owned.accounts_changed, "person_grant", "user_account", "identity_provider", "api_key")
    call_limits = CallLimits(
        calls_per_organization=settings.mcp_max_calls, organization_rate=settings.rate_limit_of_mcp_calls
    )
    supervised = SupervisedConnections(
        guarded(
            owned,
            rates=rates,
            permits=permits,
            breakers=breakers,
            clock=clock,
            limits=call_limits,
            on_breaker=states.breaker_changed,
        ),
        owned=owned,
        relist=relist,
        clock=clock,
        contents=BoundedContents(owned),
    )
    catalog_updater = CatalogUpdater(
        catalogs=catalogs, connections=supervised, organizations=organizations, clock=clock, ids=ids
    )
    return supervised


def state_reporter(settings: Settings, *, database: Database, clock: Clock, ids: IdSource) -> StateReporter | None:
    """None for a database of this process alone, which has all connections."""
    if settings.postgres_url is None:
        return None
    reports = SqlServerReports(database=database, clock=clock)
    return StateReporter(reports=reports, process=ids.new("prc"), name=f"{socket.gethostname()}:{os.getpid()}")


def node_runtime(home: Home) -> NodeRuntime:
    return NodeRuntime(
        search_path=base_process_environment().get("PATH", os.defpath),
        packaged=packaged_node(),
        own_commands=home.path / "node" / "bin",
    )


def sandbox(settings: Settings, home: Home, *, group: GivenGroup) -> Sandbox:
    inherited = base_process_environment()
    user_home = inherited.get("HOME")
    search_path = inherited.get("PATH", os.defpath)
    return Sandbox(
        mode=SandboxMode(settings.mcp_sandbox),
        private=(home.path, home.database_path),
        granted=Grants(readable=settings.readable_paths, writable=settings.writable_paths),
        ports=settings.allowed_ports,
        user_home=None if user_home is None else Path(user_home),
        probe=partial(probe_machine, LAUNCHER, search_path=search_path),
        group=lambda: group.path,
    )


def container_engine(settings: Settings, *, egress: EgressPolicy) -> ContainerEngine:
    find = partial(engine_socket, settings.mcp_container_engine)

    def load() -> ContainerEngine:
        from infrastructure.http.proxy_resolver import LOOKUPS_TOGETHER, ProxyResolver
        from infrastructure.http.shared_bound import SharedBound
        from infrastructure.mcp.containers.engine_api import EngineApi
        from infrastructure.mcp.containers.engine_socket import EngineSocket
        from infrastructure.mcp.containers.registry_guard import RegistryGuard

        registries = RegistryGuard(egress, ProxyResolver(SharedBound(LOOKUPS_TOGETHER).of("registries")))
        return EngineApi(EngineSocket(find), registries=registries, user=(os.getuid(), os.getgid()))

    return LazyContainerEngine(find, load)


def server_confinement(*, sandbox: Sandbox, directories: InstallDirectories, node: NodeRuntime) -> ServerConfinement:
    return ServerConfinement(
        sandbox=sandbox,
        directories=directories,
        search_path=node.search_path,
        runtime=tuple(dict.fromkeys(map(Path, (sys.prefix, sys.base_prefix)))),
    )


def mcp_installer(
    *,
    home: Home,
    directories: InstallDirectories,
    node: NodeRuntime,
    launches: InstalledLaunches,
    confinement: ServerConfinement,
    engine: ContainerEngine,
    clock: Clock,
    ids: IdSource,
) -> LocalMcpInstaller:
    environment = installer_environment()
    return LocalMcpInstaller(
        directories=directories,
        npm=NpmPackages(node=node),
        python=PythonPackages(
            python=Path(sys.executable),
            has_pip=find_spec("pip") is not None,
            uv=shutil.which("uv", path=environment.get("PATH")),
        ),
        images=OciImages(engine=engine),
        launches=launches,
        environment=environment,
        home=home.path,
        clock=clock,
        ids=ids,
        confine=confinement.of_installer,
    )
