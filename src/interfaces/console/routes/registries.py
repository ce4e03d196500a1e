"""MCP registries: search, an entry with its options and inputs, and a server registered from it."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.plugins.htmx import HTMXHeaders

from application.mcp.add_registry_server import AddRegistryServer, AddRegistryServerCommand
from application.mcp.check_registry_version import CheckRegistryVersion
from application.mcp.registries import LATEST, GetRegistryEntry, ListMcpRegistries, SearchMcpRegistry
from application.secrets.queries import ListSecrets
from application.system.pages import DEFAULT_PAGE_SIZE
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.mcp.registry_entry import RegistryOption
from domain.secrets.secret import SecretRef, SecretValue
from interfaces.console.faults import FormCheck
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.server_form import KINDS
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH

REGISTRIES = "/servers-registries"
"""Not below /servers: a server may have that name."""
ENTRY = f"{REGISTRIES}/{{registry:str}}/{{namespace:str}}/{{name:str}}"
_AWAY = (ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND)


class RegistryPages:
    """Data of the pages of MCP registries."""

    def __init__(
        self,
        *,
        list_mcp_registries: ListMcpRegistries,
        search_mcp_registry: SearchMcpRegistry,
        get_registry_entry: GetRegistryEntry,
        list_secrets: ListSecrets,
    ) -> None:
        self._names = list_mcp_registries
        self._search = search_mcp_registry
        self._entry = get_registry_entry
        self._list_secrets = list_secrets

    async def found(self, principal: Principal, registry: str, search: str, cursor: str) -> dict[str, object]:
        """A page of a search, in the first registry if none is named. Raises FORBIDDEN,
        NOT_FOUND."""
        names = await self._names.execute(principal)
        context = {"names": names, "registry": registry, "search": search, "entries": (), "next_cursor": None}
        if not names:
            return {**context, "problem": ""}
        context["registry"] = registry or names[0]
        try:
            page = await self._search.execute(
                principal, registry or names[0], search[:200], limit=DEFAULT_PAGE_SIZE, cursor=cursor or None
            )
        except ServiceError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:
                raise
            return {**context, "problem": error.detail}
        return {**context, "problem": "", "entries": page.entries, "next_cursor": page.next_cursor}

    async def entry(
        self, principal: Principal, registry: str, name: str, *, version: str, option: int
    ) -> dict[str, object]:
        """An entry with one of its options, the first if there is no such. Raises FORBIDDEN,
        NOT_FOUND, UNAVAILABLE."""
        entry = await self._entry.execute(principal, registry, name, version)
        number = option if 0 <= option < len(entry.options) else 0
        secrets = await all_of(lambda page: self._list_secrets.execute(principal=principal, page=page))
        return {
            "registry": registry,
            "entry": entry,
            "number": number,
            "option": entry.options[number] if entry.options else None,
            "kinds": KINDS,
            "secrets": sorted(secret.name for secret in secrets),
        }


@get(REGISTRIES)
async def show_registries(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    registry_pages: NamedDependency[RegistryPages],
    registry: FromQuery[str] = "",
    search: FromQuery[str] = "",
    cursor: FromQuery[str] = "",
) -> Response[str]:
    return pages.show(
        request, "registries.html", await registry_pages.found(request.principal, registry, search, cursor)
    )


@get(ENTRY)
async def show_registry_entry(
    *,
    request: ConsoleRequest,
    registry: FromPath[str],
    namespace: FromPath[str],
    name: FromPath[str],
    pages: NamedDependency[Pages],
    registry_pages: NamedDependency[RegistryPages],
    version: FromQuery[str] = LATEST,
    option: FromQuery[int] = 0,
) -> Response[str]:
    entry = await registry_pages.entry(
        request.principal, registry, f"{namespace}/{name}", version=version, option=option
    )
    return pages.show(request, "registry_entry.html", entry)


@post(ENTRY, status_code=200)
async def add_registry_server_page(
    *,
    request: ConsoleRequest,
    registry: FromPath[str],
    namespace: FromPath[str],
    name: FromPath[str],
    data: Form,
    pages: NamedDependency[Pages],
    get_registry_entry: NamedDependency[GetRegistryEntry],
    add_registry_server: NamedDependency[AddRegistryServer],
) -> Response[str]:
    """Register the version and option that the page showed."""
    principal = request.principal
    principal.require(Permission.SERVERS_MANAGE)
    version = data.get("version", "")
    entry = await get_registry_entry.execute(principal, registry, f"{namespace}/{name}", version)
    number = int(text) if (text := data.get("option", "")).isascii() and text.isdigit() and len(text) < 5 else -1
    option = entry.options[number] if 0 <= number < len(entry.options) else None
    fields = {} if option is None else {f"inputs.{one.name}": f"inputs.{at}" for at, one in enumerate(option.inputs)}
    with FormCheck(fields) as check:
        server = await add_registry_server.execute(
            AddRegistryServerCommand(
                principal=principal,
                registry=registry,
                name=entry.name,
                version=version,
                option=number,
                slug=data.get("slug", "").strip() or None,
                inputs={} if option is None else _inputs(option, data),
            )
        )
        return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/servers/{server.config.slug}"})
    return check.shown(pages, request)


@get("/servers/{slug:str}/newer-version")
async def show_newer_version(
    request: ConsoleRequest,
    slug: FromPath[str],
    pages: NamedDependency[Pages],
    check_registry_version: NamedDependency[CheckRegistryVersion],
) -> Response[str]:
    """The entry that the server was made from, and the registry's newer version of it. A registry
    that does not answer is said, not raised: the page of the server is read without it."""
    try:
        found, problem = await check_registry_version.execute(request.principal, slug), ""
    except ServiceError as error:
        if error.kind not in _AWAY:
            raise
        found, problem = None, error.detail
    return pages.show(request, "parts/newer_version.html", {"found": found, "problem": problem, "slug": slug})


def _inputs(option: RegistryOption, data: Form) -> dict[str, SecretValue]:
    """The inputs that were entered, or for which a secret was chosen."""
    inputs: dict[str, SecretValue] = {}
    for at, one in enumerate(option.inputs):
        if secret := data.get(f"inputs.{at}.secret"):
            inputs[one.name] = SecretRef(secret)
        elif value := data.get(f"inputs.{at}"):
            inputs[one.name] = value
    return inputs
