"""Rejects undeclared query parameters: a misspelt filter would filter nothing."""

from collections.abc import Mapping
from functools import cache

from litestar import Request
from litestar.datastructures.state import State
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler
from litestar.params import QueryParameter

from domain.errors import Violation, invalid


async def only_declared_queries(request: Request[object, object, State]) -> None:
    """Raises INVALID `parameters_invalid` with every unknown name. Called before each request is
    read, and no guard: Litestar copies the handler for each call of a guard."""
    if not request.scope["query_string"]:
        return
    declared = frozenset(query_names(request.route_handler).values())
    unknown = sorted({name for name in request.query_params if name not in declared})
    if unknown:
        takes = ", ".join(sorted(declared)) or "none"
        message = f"is not a query parameter here; there are: {takes}"
        wrong = (Violation(path=name[:100], message=message) for name in unknown[:20])
        raise invalid("parameters_invalid", "A parameter of the request is not valid.", *wrong)


@cache
def query_names(handler: BaseRouteHandler) -> Mapping[str, str]:
    """The query parameters of a route and its own dependencies: from our names to those that
    clients send."""
    own = (each for each in (handler.dependencies or {}).values() if isinstance(each, Provide))
    signatures = (handler.parsed_fn_signature, *(each.parsed_fn_signature for each in own))
    return {
        name: kwarg.name or kwarg.query or name
        for signature in signatures
        for name, field in signature.parameters.items()
        if isinstance(kwarg := field.kwarg_definition, QueryParameter)
    }
