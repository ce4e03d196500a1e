"""Usage: tokens and cost of a period."""

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from interfaces.console.form_values import FormValues
from interfaces.console.pages import HEADERS, Pages
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
    split: FromQuery[str] = "",
) -> Response[str]:
    """Usage by day, agent, model and tool; all conditions must hold."""
    asked = FormValues({"since": since, "until": until, "agent": agent, "model": model, "split": split})
    context, is_valid = await usage_pages.of(request.principal, asked)
    return pages.show(request, "usage.html", context, status=200 if is_valid else 422)


@get("/usage.csv")
async def download_usage(
    *,
    request: ConsoleRequest,
    usage_pages: NamedDependency[UsagePages],
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
    agent: FromQuery[str] = "",
    model: FromQuery[str] = "",
) -> Response[str]:
    """The same period as a table for spreadsheets."""
    asked = FormValues({"since": since, "until": until, "agent": agent, "model": model})
    text = await usage_pages.table(request.principal, asked)
    headers = {**HEADERS, "Content-Disposition": 'attachment; filename="usage.csv"'}
    return Response(text, media_type="text/csv", headers=headers)
