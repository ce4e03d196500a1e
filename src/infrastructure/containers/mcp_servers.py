"""Providers of MCP servers: connections, catalogs, installation and administration."""

from dependency_injector import containers, providers

from application.gateway.subscriptions.subscribers import Subscribers
from application.mcp.account_secrets import AccountsWithSecrets
from application.mcp.add_registry_server import AddRegistryServer
from application.mcp.approve_definition import ApproveDefinition
from application.mcp.authorize_mcp_server import AuthorizeMcpServer
from application.mcp.catalog_reader import CatalogReader
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.check_mcp_server import CheckMcpServer
from application.mcp.check_registry_version import CheckRegistryVersion
from application.mcp.connect_account import ConnectAccount
from application.mcp.delete_mcp_server import DeleteMcpServer
from application.mcp.describe_mcp_servers import DescribeMcpServers
from application.mcp.disconnect_account import DisconnectAccount
from application.mcp.disconnect_mcp_server import DisconnectMcpServer
from application.mcp.import_mcp_servers import ImportMcpServers
from application.mcp.install_mcp_server import InstallMcpServer
from application.mcp.list_accounts import ListAccounts
from application.mcp.mcp_switch import McpSwitch
from application.mcp.oauth_client import DescribeOAuthClient
from application.mcp.preview_mcp_import import PreviewMcpImport
from application.mcp.queries import (
    CountQuarantinedTools,
    DescribeConfinement,
    GetMcpServer,
    GetMcpServerLogs,
    GetMcpServerStatus,
    GetMcpServerTools,
    ListMcpServers,
)
from application.mcp.refresh_mcp_server import RefreshMcpServer
from application.mcp.register_mcp_server import RegisterMcpServer
from application.mcp.registries import GetRegistryEntry, ListMcpRegistries, SearchMcpRegistry
from application.mcp.reject_definition import RejectDefinition
from application.mcp.server_certificates import ServerCertificates
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_status import ServerStatuses
from application.mcp.tell_missing_grants import MissingGrantNotices, TellMissingGrants
from application.mcp.uninstall_mcp_server import UninstallMcpServer
from application.mcp.update_mcp_server import UpdateMcpServer
from infrastructure.assembly import mcp as mcp_assembly
from infrastructure.assembly import storage as storage_assembly
from infrastructure.confinement.given_group import GivenGroup
from infrastructure.confinement.sandbox import Sandbox
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.containers.wiring import Singletons
from infrastructure.mcp.connections.resource_watches import ResourceWatches
from infrastructure.mcp.containers.engine import ContainerEngine
from infrastructure.mcp.containers.marks import ContainerMarks
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.installer import LocalMcpInstaller
from infrastructure.mcp.install.launches import InstalledLaunches
from infrastructure.mcp.install.node import NodeRuntime
from infrastructure.mcp.install.person_files import LocalPersonFiles
from infrastructure.mcp.install.server_confinement import ServerConfinement
from infrastructure.mcp.lazy_registries import LazyRegistries
from infrastructure.mcp.oauth.lazy_oauth import LazyOAuth
from infrastructure.mcp.state_reporter import StateReporter
from infrastructure.mcp.wrappers.announced_connections import AnnouncedConnections
from infrastructure.mcp.wrappers.supervised_connections import SupervisedConnections
from infrastructure.persistence.mcp.missing_grants import SqlMissingGrantNotices

singleton = Singletons(Platform, Storage)


class McpServers(containers.DeclarativeContainer):
    mcp_switch = singleton(McpSwitch, enabled=Platform.settings.provided.mcp_enabled)
    install_directories = singleton(InstallDirectories, Platform.home.provided.servers_path)
    node_runtime: providers.Provider[NodeRuntime] = singleton(mcp_assembly.node_runtime, Platform.home)
    server_launches = singleton(InstalledLaunches, directories=install_directories, node=node_runtime)
    given_group: providers.Provider[GivenGroup] = singleton(GivenGroup)
    sandbox: providers.Provider[Sandbox] = singleton(
        mcp_assembly.sandbox, Platform.settings, Platform.home, group=given_group
    )
    server_confinement: providers.Provider[ServerConfinement] = singleton(
        mcp_assembly.server_confinement, sandbox=sandbox, directories=install_directories, node=node_runtime
    )
    container_engine: providers.Provider[ContainerEngine] = singleton(
        mcp_assembly.container_engine, Platform.settings, egress=Platform.egress_policy
    )
    container_marks = singleton(ContainerMarks, home=Platform.home.provided.path)
    oauth: providers.Provider[LazyOAuth] = singleton(
        mcp_assembly.oauth,
        store=Storage.oauth_store,
        egress=Platform.egress_policy,
        address=Platform.public_address,
        rows=Platform.row_notifications,
    )
    accounts: providers.Provider[AccountsWithSecrets] = singleton(AccountsWithSecrets, grants=oauth)
    mcp_registries: providers.Provider[LazyRegistries] = singleton(
        mcp_assembly.registries, Platform.settings, egress=Platform.egress_policy
    )
    state_reporter: providers.Provider[StateReporter | None] = singleton(mcp_assembly.state_reporter, Platform.settings)
    missing_grant_notices: providers.Provider[MissingGrantNotices] = singleton(SqlMissingGrantNotices)
    tell_missing_grants = singleton(TellMissingGrants, notices=missing_grant_notices)
    subscribers: providers.Provider[Subscribers] = singleton(storage_assembly.subscribers, Platform.row_notifications)
    mcp_installer: providers.Provider[LocalMcpInstaller] = singleton(
        mcp_assembly.mcp_installer,
        directories=install_directories,
        node=node_runtime,
        launches=server_launches,
        confinement=server_confinement,
        engine=container_engine,
    )
    connections: providers.Provider[SupervisedConnections] = singleton(
        mcp_assembly.connections,
        switch=mcp_switch,
        egress=Platform.egress_policy,
        oauth=oauth,
        launches=server_launches,
        installer=mcp_installer,
        confinement=server_confinement,
        engine=container_engine,
        marks=container_marks,
        directories=install_directories,
        node=node_runtime,
        reporter=state_reporter,
        states=Platform.server_states,
        missing_grants=tell_missing_grants,
        subscribers=subscribers,
        announcements=Platform.wakeups,
        rows=Platform.row_notifications,
    )
    resource_watches = singleton(ResourceWatches, connections)
    # For use cases that end connections in other processes, too.
    announced_connections = singleton(AnnouncedConnections, connections, announcements=Platform.wakeups)
    catalog_updater = singleton(CatalogUpdater, connections=connections)
    catalog_reader = singleton(CatalogReader, catalog_updater=catalog_updater)

    server_installs = singleton(ServerInstalls, installer=mcp_installer, connections=announced_connections)
    server_statuses = singleton(
        ServerStatuses,
        connections=connections,
        installs=server_installs,
        reports=state_reporter,
    )
    install_mcp_server = singleton(
        InstallMcpServer,
        switch=mcp_switch,
        servers=Storage.fresh_servers,
        installs=server_installs,
        installer=mcp_installer,
        statuses=server_statuses,
    )
    uninstall_mcp_server = singleton(
        UninstallMcpServer,
        servers=Storage.fresh_servers,
        installs=server_installs,
        statuses=server_statuses,
        connections=announced_connections,
    )
    server_certificates: providers.Provider[ServerCertificates] = singleton(mcp_assembly.server_certificates)
    register_mcp_server = singleton(
        RegisterMcpServer,
        servers=Storage.fresh_servers,
        switch=mcp_switch,
        outbound=Platform.egress_policy,
        certificates=server_certificates,
    )
    import_mcp_servers = singleton(ImportMcpServers, register=register_mcp_server)
    list_mcp_registries = singleton(ListMcpRegistries, registries=mcp_registries)
    search_mcp_registry = singleton(SearchMcpRegistry, registries=mcp_registries)
    get_registry_entry = singleton(GetRegistryEntry, registries=mcp_registries)
    add_registry_server = singleton(AddRegistryServer, entries=get_registry_entry, register=register_mcp_server)
    check_registry_version = singleton(CheckRegistryVersion, servers=Storage.fresh_servers, entries=get_registry_entry)
    preview_mcp_import = singleton(
        PreviewMcpImport, servers=Storage.fresh_servers, switch=mcp_switch, outbound=Platform.egress_policy
    )
    update_mcp_server = singleton(
        UpdateMcpServer,
        servers=Storage.fresh_servers,
        switch=mcp_switch,
        connections=announced_connections,
        outbound=Platform.egress_policy,
        certificates=server_certificates,
    )
    get_mcp_server = singleton(GetMcpServer, servers=Storage.fresh_servers)
    list_mcp_servers = singleton(ListMcpServers)
    delete_mcp_server = singleton(
        DeleteMcpServer, servers=Storage.fresh_servers, connections=announced_connections, installs=server_installs
    )
    check_mcp_server = singleton(
        CheckMcpServer,
        servers=Storage.fresh_servers,
        catalog_updater=catalog_updater,
        switch=mcp_switch,
        connections=connections,
        installer=mcp_installer,
        certificates=server_certificates,
    )
    refresh_mcp_server = singleton(
        RefreshMcpServer, servers=Storage.fresh_servers, catalog_updater=catalog_updater, switch=mcp_switch
    )
    approve_definition = singleton(ApproveDefinition, servers=Storage.fresh_servers, catalogs=Storage.fresh_catalogs)
    reject_definition = singleton(RejectDefinition, servers=Storage.fresh_servers, catalogs=Storage.fresh_catalogs)
    disconnect_mcp_server = singleton(
        DisconnectMcpServer, servers=Storage.fresh_servers, connections=announced_connections, statuses=server_statuses
    )
    get_mcp_server_tools = singleton(GetMcpServerTools, servers=Storage.fresh_servers, catalogs=Storage.fresh_catalogs)
    count_quarantined_tools = singleton(CountQuarantinedTools, quarantine_counts=Storage.quarantine_counts)
    get_mcp_server_status = singleton(GetMcpServerStatus, servers=Storage.fresh_servers, statuses=server_statuses)
    describe_mcp_servers = singleton(
        DescribeMcpServers, statuses=server_statuses, quarantine_counts=Storage.quarantine_counts
    )
    describe_confinement = singleton(DescribeConfinement, confinement=sandbox)
    get_mcp_server_logs = singleton(GetMcpServerLogs, connections=connections, installer=mcp_installer)
    authorize_mcp_server = singleton(AuthorizeMcpServer, servers=Storage.fresh_servers, authorizer=accounts)
    list_accounts = singleton(
        ListAccounts,
        servers=Storage.fresh_servers,
        authorizer=accounts,
        person_secrets=Storage.person_secrets,
        address=Platform.public_address,
    )
    connect_account = singleton(ConnectAccount, servers=Storage.fresh_servers, authorizer=accounts)
    person_files = singleton(LocalPersonFiles, directories=install_directories, person_secrets=Storage.person_secrets)
    disconnect_account = singleton(
        DisconnectAccount,
        servers=Storage.fresh_servers,
        person_secrets=Storage.person_secrets,
        authorizer=accounts,
        connections=announced_connections,
        person_files=person_files,
    )
    describe_oauth_client = singleton(DescribeOAuthClient, address=Platform.public_address)
