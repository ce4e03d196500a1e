"""Usage: tokens and cost of a period."""

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from interfaces.console.form_values import FormValues
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.usage_pages import UsagePages


@get("/usage")
async def show_usage(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    usage_pages: NamedDependency[UsagePages],
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
    agent: FromQuery[str] = "",
    model: FromQuery[str] = "",
) -> Response[str]:
    """Usage by day, agent and model; all conditions must hold."""
    asked = FormValues({"since": since, "until": until, "agent": agent, "model": model})
    context, is_valid = await usage_pages.of(request.principal, asked)
    return pages.show(request, "usage.html", context, status=200 if is_valid else 422)
