"""Routes of the API explorer and of the documentation. They need no key: both are public."""

from functools import cache
from importlib.resources import files

from litestar import Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from interfaces.explorer.guides import PATH, guide_page, guides_page

_TYPES = {
    "explorer.css": "text/css",
    "explorer.js": "text/javascript",
    "swagger-ui-5.35.0.css": "text/css",
    "swagger-ui-5.35.0.js": "text/javascript",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@get("/docs", include_in_schema=False, sync_to_thread=True)
def explorer() -> Response[bytes]:
    """The page."""
    return _file("explorer.html", "text/html", cached_for_s=0)


@get("/docs/{name:str}", include_in_schema=False, sync_to_thread=True)
def explorer_file(name: FromPath[str]) -> Response[bytes]:
    """A file of the page."""
    if name not in _TYPES:
        raise NotFoundException
    return _file(name, _TYPES[name], cached_for_s=86_400)


@get(PATH, include_in_schema=False, sync_to_thread=True)
def documentation() -> Response[bytes]:
    """The list of guides."""
    return _page(guides_page())


@get(f"{PATH}/{{name:str}}", include_in_schema=False, sync_to_thread=True)
def documentation_page(name: FromPath[str]) -> Response[bytes]:
    """A guide."""
    page = guide_page(name)
    if page is None:
        raise NotFoundException
    return _page(page)


def _page(content: bytes) -> Response[bytes]:
    return Response(content, media_type="text/html", headers={**_HEADERS, "Cache-Control": "no-cache"})


def _file(name: str, media_type: str, *, cached_for_s: int) -> Response[bytes]:
    headers = {**_HEADERS, "Cache-Control": f"max-age={cached_for_s}" if cached_for_s else "no-cache"}
    return Response(_content(name), media_type=media_type, headers=headers)


@cache
def _content(name: str) -> bytes:
    return files("interfaces.explorer").joinpath("static", name).read_bytes()


EXPLORER = (explorer, explorer_file, documentation, documentation_page)
