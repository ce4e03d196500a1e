"""Usage: tokens and cost of a period."""

from litestar import Response, get
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery

from interfaces.console.form_values import FormValues
from interfaces.console.pages import HEADERS, Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.usage_pages import UsagePages
from interfaces.console.usage_people import UsagePeople
from interfaces.console.usage_tools import UsageTools


def _asked(
    *, since: FromQuery[str] = "", until: FromQuery[str] = "", agent: FromQuery[str] = "", model: FromQuery[str] = ""
) -> FormValues:
    return FormValues({"since": since, "until": until, "agent": agent, "model": model})


_OF_PERIOD = {"asked": Provide(_asked, sync_to_thread=False)}


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
    """Usage by day, agent and model; all conditions must hold."""
    asked = FormValues({"since": since, "until": until, "agent": agent, "model": model, "split": split})
    context, is_valid = await usage_pages.of(request.principal, asked)
    return pages.show(request, "usage.html", context, status=200 if is_valid else 422)


@get("/usage.csv", dependencies=_OF_PERIOD)
async def download_usage(
    request: ConsoleRequest, usage_pages: NamedDependency[UsagePages], asked: NamedDependency[FormValues]
) -> Response[str]:
    """The same period as a table for spreadsheets."""
    return _table("usage.csv", await usage_pages.table(request.principal, asked))


@get("/parts/usage-people", dependencies=_OF_PERIOD)
async def show_usage_by_person(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    usage_people: NamedDependency[UsagePeople],
    asked: NamedDependency[FormValues],
) -> Response[str]:
    """Who started the runs of the period, and what they used."""
    return pages.show(request, "parts/usage_people.html", await usage_people.of(request.principal, asked))


@get("/usage-people.csv", dependencies=_OF_PERIOD)
async def download_usage_by_person(
    request: ConsoleRequest, usage_people: NamedDependency[UsagePeople], asked: NamedDependency[FormValues]
) -> Response[str]:
    return _table("usage-people.csv", await usage_people.table(request.principal, asked))


@get("/parts/usage-tools", dependencies=_OF_PERIOD)
async def show_usage_by_tool(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    usage_tools: NamedDependency[UsageTools],
    asked: NamedDependency[FormValues],
) -> Response[str]:
    """Calls of the period by tool."""
    return pages.show(request, "parts/usage_tools.html", await usage_tools.of(request.principal, asked))


@get("/usage-tools.csv", dependencies=_OF_PERIOD)
async def download_usage_by_tool(
    request: ConsoleRequest, usage_tools: NamedDependency[UsageTools], asked: NamedDependency[FormValues]
) -> Response[str]:
    return _table("usage-tools.csv", await usage_tools.table(request.principal, asked))


def _table(name: str, text: str) -> Response[str]:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/csv", headers=headers)
