"""Pages and fragments: templates, their common data, and security headers."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from litestar import Response

from domain.hidden_text import revealed, revealed_json
from interfaces.console.requests import ConsoleRequest
from interfaces.console_paths import PATH

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
}
STATIC = ("console.css", "live.js", "run.js", "forms.js", "rows.js", "workflow.js", "htmx-4.0.1.min.js", "icon.svg")
NAVIGATION = (
    ("Overview", PATH),
    ("Runs", f"{PATH}/runs"),
    ("Approvals", f"{PATH}/approvals"),
    ("Playground", f"{PATH}/playground"),
    ("Agents", f"{PATH}/agents"),
    ("MCP servers", f"{PATH}/servers"),
    ("Workflows", f"{PATH}/workflows"),
    ("Usage", f"{PATH}/usage"),
    ("Audit", f"{PATH}/audit"),
)
FOR_ADMINS = (("API keys", f"{PATH}/keys"), ("Settings", f"{PATH}/settings"))
"""Pages for admins only."""


class Pages:
    """Renders templates. All values are escaped; there is no inline script or style."""

    def __init__(self, *, version: str) -> None:
        self._environment = Environment(
            loader=PackageLoader("interfaces.console"),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.assets = {name: _asset(name) for name in STATIC}
        self._environment.globals |= {
            "version": version,
            "navigation": NAVIGATION,
            "navigation_of_admins": FOR_ADMINS,
            "static": {name: f"{PATH}/static/{name}?v={digest}" for name, (_, digest) in self.assets.items()},
        }
        self._environment.filters |= {
            "moment": moment,
            "usd": usd,
            "seconds": seconds,
            "pretty": pretty,
            "revealed": shown_text,
            "twice": twice,
        }

    def show(
        self,
        request: ConsoleRequest,
        template: str,
        context: Mapping[str, object] | None = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response[str]:
        """A page or a fragment."""
        text = self._environment.get_template(template).render(
            person=request.person, path=request.url.path, **(context or {})
        )
        return Response(text, status_code=status, media_type="text/html", headers={**HEADERS, **(headers or {})})


def moment(value: datetime | None) -> str:
    """A time in UTC for people; `<time>` has the full value."""
    return "–" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def usd(value: Decimal | float | None) -> str:
    """An amount of money, precise enough for single calls."""
    return "–" if value is None else f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


def seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min"


def pretty(value: object) -> str:
    """JSON, indented, with hidden characters as escapes."""
    return revealed_json(json.dumps(value, indent=2, ensure_ascii=False))


def shown_text(value: object) -> str:
    """Text of a model, a server or a user, with hidden characters as escapes."""
    return revealed(str(value))


def twice(value: str) -> tuple[str, str]:
    """A choice whose label is its value."""
    return value, value


def _asset(name: str) -> tuple[bytes, str]:
    content = files("interfaces.console").joinpath("static", name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]
