"""Names of things by their ids, for tables."""

from collections.abc import Mapping

from interfaces.cli.api import ServiceApi, listed, path_to
from interfaces.cli.failures import ApiProblem
from interfaces.cli.kinds import BY_PREFIX


async def names_by_id(api: ServiceApi, *prefixes: str) -> Mapping[str, str]:
    """The names of all things of the kinds with these prefixes. Kinds that the key may not list
    have none; so have deleted things, which tables show by their ids."""
    names: dict[str, str] = {}
    for prefix in prefixes:
        kind = BY_PREFIX[prefix]
        try:
            page = await listed(api, path_to(kind.path))
        except ApiProblem:
            continue
        data = page["data"]
        for entry in data if isinstance(data, list) else []:
            if isinstance(entry, dict):
                names[str(entry.get("id"))] = str(entry.get(kind.name or "name"))
    return names
