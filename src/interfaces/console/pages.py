"""Pages and fragments: templates, their common data, and security headers."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from litestar import Response
from markupsafe import Markup

from domain.hidden_text import revealed, revealed_json
from domain.json_value import JsonValue
from domain.runs.run import Run
from domain.threads.message import TextContent
from interfaces.console.browsers import browser_in_words
from interfaces.console.error_words import error_word
from interfaces.console.navigation import NAVIGATION
from interfaces.console.requests import ConsoleRequest
from interfaces.console.server_form import KINDS
from interfaces.console.sessions import AS_COOKIE
from interfaces.console_paths import PATH

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
}
STATIC = (
    "applications.css",
    "canvas.css",
    "canvas.js",
    "canvas_edit.js",
    "canvas_forms.js",
    "canvas_parts.js",
    "canvas_show.js",
    "canvas_text.js",
    "chat.js",
    "chat_messages.js",
    "console.css",
    "frame.js",
    "icons.css",
    "icons.svg",
    "keys.js",
    "live.js",
    "run.js",
    "forms.js",
    "inbox.js",
    "markdown.min.js",
    "notify.js",
    "rows.js",
    "trace.js",
    "unsaved.js",
    "workflow.js",
    "yaml.min.js",
    "htmx-4.0.1.min.js",
    "icon.svg",
)
TITLE_LENGTH = 90
_WORDS = {
    "in_progress": "running",
    "requires_action": "waiting for a person",
    "incomplete": "ended early",
    "disconnected": "idle",
    "needs_auth": "needs authorization",
    "unhealthy": "failing",
}


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
            "server_kinds": KINDS,
            "static": {name: self._address(name) for name in STATIC},
            "icon": self._icon,
        }
        self._environment.filters |= {
            "moment": moment,
            "usd": usd,
            "seconds": seconds,
            "pretty": pretty,
            "revealed": shown_text,
            "twice": twice,
            "browser": browser_in_words,
            "asked": asked,
            "in_a_line": in_a_line,
            "said": said,
            "short_digest": short_digest,
            "took": took,
            "word": word,
            "error_word": error_word,
        }

    def _address(self, asset: str) -> str:
        return f"{PATH}/static/{asset}?v={self.assets[asset][1]}"

    def _icon(self, name: str) -> Markup:
        """One of the sprite, as decoration of the words beside it."""
        return Markup('<svg class="glyph" aria-hidden="true"><use href="{}#{}"></use></svg>').format(
            self._address("icons.svg"), name
        )

    def show(
        self,
        request: ConsoleRequest,
        template: str,
        context: Mapping[str, object] | None = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response[str]:
        """A page or a fragment. A page that says that an impersonation is over removes its
        cookie."""
        text = self._environment.get_template(template).render(
            person=request.person, path=request.url.path, here=_address(request), **(context or {})
        )
        answer = Response(text, status_code=status, media_type="text/html", headers={**HEADERS, **(headers or {})})
        if request.person is not None and request.person.is_acting_over and not request.htmx:
            answer.delete_cookie(AS_COOKIE, path=PATH)
        return answer


def _address(request: ConsoleRequest) -> str:
    """The page's address below the host."""
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path


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


def in_a_line(text: str) -> str:
    """The first words of a text: a title."""
    words = " ".join(text[: 4 * TITLE_LENGTH].split())
    return revealed(words if len(words) <= TITLE_LENGTH else f"{words[:TITLE_LENGTH]}…")


def asked(run: Run) -> str:
    """What a run was asked, in a line: its title."""
    for part in run.input:
        if isinstance(part, TextContent) and (title := in_a_line(part.text)):
            return title
    return "An image or a file" if run.input else "No text"


def said(value: JsonValue) -> str:
    """The first words of a JSON value, in a line; of an object those of its values."""
    match value:
        case None:
            return ""
        case str():
            return in_a_line(value)
        case Mapping() | list():
            parts = value.values() if isinstance(value, Mapping) else value
            return in_a_line(" · ".join(filter(None, map(said, parts))))
        case _:
            return in_a_line(json.dumps(value))


def took(run: Run) -> float | None:
    """How long a run took in seconds; None if it has not begun."""
    return run.took_s if run.finished_at is not None else run.took_s or None


def word(value: str) -> str:
    """A state in words."""
    return _WORDS.get(value) or value.replace("_", " ")


def short_digest(value: str) -> str:
    """For the id of an element, which a refreshed page keeps for the same thing."""
    return hashlib.sha256(value.encode()).hexdigest()[:16]


def _asset(name: str) -> tuple[bytes, str]:
    content = files("interfaces.console").joinpath("static", name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]
