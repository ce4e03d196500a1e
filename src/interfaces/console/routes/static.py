"""Styles, scripts and the icon, named by content for caching."""

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from interfaces.console.pages import Pages

_TYPES = {
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}


@get("/static/{name:str}", sync_to_thread=False)
def read_asset(name: FromPath[str], pages: NamedDependency[Pages]) -> Response[bytes]:
    """The file. Its URL has a digest of its content, so it may be cached forever."""
    asset = pages.assets.get(name)
    if asset is None:
        raise NotFoundException
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(asset[0], media_type=_TYPES[name.rpartition(".")[2]], headers=headers)
