"""Providers of MCP servers: connections, catalogs, installation and administration."""

from dependency_injector import containers, providers

from application.gateway.subscriptions.subscribers import Subscribers
from application.mcp.approve_definition import ApproveDefinition
from application.mcp.authorize_mcp_server import AuthorizeMcpServer
from application.mcp.catalog_reader import CatalogReader
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.check_mcp_server import CheckMcpServer
from application.mcp.delete_mcp_server import DeleteMcpServer
from application.mcp.disconnect_mcp_server import DisconnectMcpServer
from application.mcp.finish_mcp_authorization import FinishMcpAuthorization
from application.mcp.import_mcp_servers import ImportMcpServers
from application.mcp.install_mcp_server import InstallMcpServer
from application.mcp.mcp_switch import McpSwitch
from application.mcp.oauth_client import DescribeOAuthClient
from application.mcp.ports import McpInstaller
from application.mcp.preview_mcp_import import PreviewMcpImport
from application.mcp.queries import (
    GetMcpServer,
    GetMcpServerLogs,
    GetMcpServerStatus,
    GetMcpServerTools,
    ListMcpServers,
)
from application.mcp.refresh_mcp_server import RefreshMcpServer
from application.mcp.register_mcp_server import RegisterMcpServer
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_status import ServerStatuses
from application.mcp.uninstall_mcp_server import UninstallMcpServer
from application.mcp.update_mcp_server import UpdateMcpServer
from infrastructure.assembly import mcp as mcp_assembly
from infrastructure.assembly import storage as storage_assembly
from infrastructure.containers.platform import Platform
from infrastructure.containers.storage import Storage
from infrastructure.mcp.connections.resource_watches import ResourceWatches
from infrastructure.mcp.install.directories import InstallDirectories
from infrastructure.mcp.install.launches import InstalledLaunches
from infrastructure.mcp.install.node import NodeRuntime
from infrastructure.mcp.oauth.lazy_oauth import LazyOAuth
from infrastructure.mcp.state_reporter import StateReporter
from infrastructure.mcp.wrappers.announced_connections import AnnouncedConnections
from infrastructure.mcp.wrappers.supervised_connections import SupervisedConnections


class McpServers(containers.DeclarativeContainer):
    mcp_switch: providers.Provider[McpSwitch] = providers.Singleton(
        McpSwitch, enabled=Platform.settings.provided.mcp_enabled, organizations=Storage.organizations
    )
    install_directories: providers.Provider[InstallDirectories] = providers.Singleton(
        InstallDirectories, Platform.home.provided.servers_path
    )
    node_runtime: providers.Provider[NodeRuntime] = providers.Singleton(mcp_assembly.node_runtime, Platform.home)
    server_launches: providers.Provider[InstalledLaunches] = providers.Singleton(
        InstalledLaunches, directories=install_directories, node=node_runtime
    )
    oauth: providers.Provider[LazyOAuth] = providers.Singleton(
        mcp_assembly.oauth,
        clock=Platform.clock,
        servers=Storage.servers,
        secrets=Storage.secrets,
        store=Storage.oauth_store,
        known_secrets=Platform.known_secrets,
        egress=Platform.egress_policy,
        proxies=Platform.proxies,
        address=Platform.public_address,
        rows=Platform.row_notifications,
    )
    state_reporter: providers.Provider[StateReporter | None] = providers.Singleton(
        mcp_assembly.state_reporter,
        Platform.settings,
        database=Storage.database,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    subscribers: providers.Provider[Subscribers] = providers.Singleton(
        storage_assembly.subscribers, Platform.row_notifications
    )
    connections: providers.Provider[SupervisedConnections] = providers.Singleton(
        mcp_assembly.connections,
        settings=Platform.settings,
        clock=Platform.clock,
        ids=Platform.ids,
        catalogs=Storage.catalogs,
        secrets=Storage.secrets,
        known_secrets=Platform.known_secrets,
        egress=Platform.egress_policy,
        proxies=Platform.proxies,
        oauth=oauth,
        launches=server_launches,
        node=node_runtime,
        reporter=state_reporter,
        states=Platform.server_states,
        subscribers=subscribers,
        announcements=Platform.wakeups,
    )
    resource_watches: providers.Provider[ResourceWatches] = providers.Singleton(ResourceWatches, connections)
    # For use cases that end connections in other processes, too.
    announced_connections: providers.Provider[AnnouncedConnections] = providers.Singleton(
        AnnouncedConnections, connections, announcements=Platform.wakeups
    )
    catalog_updater: providers.Provider[CatalogUpdater] = providers.Singleton(
        CatalogUpdater,
        catalogs=Storage.catalogs,
        connections=connections,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    catalog_reader: providers.Provider[CatalogReader] = providers.Singleton(
        CatalogReader, catalogs=Storage.catalogs, catalog_updater=catalog_updater, clock=Platform.clock
    )

    mcp_installer: providers.Provider[McpInstaller] = providers.Singleton(
        mcp_assembly.mcp_installer,
        home=Platform.home,
        directories=install_directories,
        node=node_runtime,
        launches=server_launches,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    server_installs: providers.Provider[ServerInstalls] = providers.Singleton(
        ServerInstalls,
        installer=mcp_installer,
        servers=Storage.servers,
        connections=announced_connections,
        audit_log=Storage.audit_log,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    server_statuses: providers.Provider[ServerStatuses] = providers.Singleton(
        ServerStatuses,
        connections=connections,
        installs=server_installs,
        installer=mcp_installer,
        reports=state_reporter,
    )
    install_mcp_server: providers.Provider[InstallMcpServer] = providers.Singleton(
        InstallMcpServer,
        servers=Storage.fresh_servers,
        installs=server_installs,
        installer=mcp_installer,
        statuses=server_statuses,
    )
    uninstall_mcp_server: providers.Provider[UninstallMcpServer] = providers.Singleton(
        UninstallMcpServer,
        servers=Storage.fresh_servers,
        installs=server_installs,
        statuses=server_statuses,
        connections=announced_connections,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    register_mcp_server: providers.Provider[RegisterMcpServer] = providers.Singleton(
        RegisterMcpServer,
        servers=Storage.fresh_servers,
        outbound=Platform.egress_policy,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    import_mcp_servers: providers.Provider[ImportMcpServers] = providers.Singleton(
        ImportMcpServers, register=register_mcp_server
    )
    preview_mcp_import: providers.Provider[PreviewMcpImport] = providers.Singleton(
        PreviewMcpImport, servers=Storage.fresh_servers, outbound=Platform.egress_policy
    )
    update_mcp_server: providers.Provider[UpdateMcpServer] = providers.Singleton(
        UpdateMcpServer,
        servers=Storage.fresh_servers,
        connections=announced_connections,
        outbound=Platform.egress_policy,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    get_mcp_server: providers.Provider[GetMcpServer] = providers.Singleton(GetMcpServer, servers=Storage.fresh_servers)
    list_mcp_servers: providers.Provider[ListMcpServers] = providers.Singleton(ListMcpServers, servers=Storage.servers)
    delete_mcp_server: providers.Provider[DeleteMcpServer] = providers.Singleton(
        DeleteMcpServer,
        servers=Storage.fresh_servers,
        connections=announced_connections,
        installs=server_installs,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    check_mcp_server: providers.Provider[CheckMcpServer] = providers.Singleton(
        CheckMcpServer,
        servers=Storage.fresh_servers,
        catalog_updater=catalog_updater,
        switch=mcp_switch,
        connections=connections,
        audit_log=Storage.audit_log,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    refresh_mcp_server: providers.Provider[RefreshMcpServer] = providers.Singleton(
        RefreshMcpServer, servers=Storage.fresh_servers, catalog_updater=catalog_updater, switch=mcp_switch
    )
    approve_definition: providers.Provider[ApproveDefinition] = providers.Singleton(
        ApproveDefinition,
        servers=Storage.fresh_servers,
        catalogs=Storage.fresh_catalogs,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    disconnect_mcp_server: providers.Provider[DisconnectMcpServer] = providers.Singleton(
        DisconnectMcpServer, servers=Storage.fresh_servers, connections=announced_connections, statuses=server_statuses
    )
    get_mcp_server_tools: providers.Provider[GetMcpServerTools] = providers.Singleton(
        GetMcpServerTools, servers=Storage.fresh_servers, catalogs=Storage.fresh_catalogs
    )
    get_mcp_server_status: providers.Provider[GetMcpServerStatus] = providers.Singleton(
        GetMcpServerStatus, servers=Storage.fresh_servers, statuses=server_statuses
    )
    get_mcp_server_logs: providers.Provider[GetMcpServerLogs] = providers.Singleton(
        GetMcpServerLogs, servers=Storage.servers, connections=connections, installer=mcp_installer
    )
    authorize_mcp_server: providers.Provider[AuthorizeMcpServer] = providers.Singleton(
        AuthorizeMcpServer, servers=Storage.fresh_servers, authorizer=oauth
    )
    finish_mcp_authorization: providers.Provider[FinishMcpAuthorization] = providers.Singleton(
        FinishMcpAuthorization,
        authorizer=oauth,
        connections=announced_connections,
        audit_log=Storage.audit_log,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    describe_oauth_client: providers.Provider[DescribeOAuthClient] = providers.Singleton(
        DescribeOAuthClient, address=Platform.public_address
    )
