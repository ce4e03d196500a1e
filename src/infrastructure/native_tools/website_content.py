"""website_content: the main text of a page that the model names. Below: `page_fetcher.py` and text
extraction."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from application.extraction.ports import ExtractedText, TextExtractor
from application.system.lazy import LazyClosable
from application.tools.ports import NativeToolContext, NativeToolError, NativeToolOutput
from domain.errors import ServiceError
from domain.json_value import JsonObject
from domain.tools.capabilities import ToolType
from domain.tools.tool import Tool

DEFAULT_CHARACTERS = 20_000
MAX_CHARACTERS = 60_000
_MAX_URL = 8_192
_SHARE = 0.95
"""Share of the call's time for fetching and reading. The rest is for the error message."""

WEBSITE_CONTENT = Tool(
    name=ToolType.WEBSITE_CONTENT.value,
    type=ToolType.WEBSITE_CONTENT,
    description=(
        "Read a public web page: fetches a URL and returns its title, the URL it was found at after redirects, and its"
        " main text as Markdown, without menus and advertisements. PDFs and plain text files are read too. Scripts of"
        " the page are not run, and pages that need a login cannot be read."
    ),
    parameters={
        "type": "object",
        "properties": {
            "url": {
                "type": "string",
                "description": "The http or https URL, complete.",
                "minLength": 1,
                "maxLength": _MAX_URL,
            },
            "max_chars": {
                "type": "integer",
                "description": f"How many characters of the text to return at most; {DEFAULT_CHARACTERS} if absent.",
                "minimum": 100,
                "maximum": MAX_CHARACTERS,
            },
        },
        "required": ["url"],
        "additionalProperties": False,
    },
    repeatable=True,  # it reads only
)


class Page(Protocol):
    @property
    def url(self) -> str: ...

    @property
    def media_type(self) -> str:
        """Its type, with parameters."""

    @property
    def data(self) -> bytes: ...


class Fetcher(Protocol):
    """Fetches documents from the public web."""

    async def fetch(self, url: str) -> Page:
        """The document. Raises NativeToolError."""

    async def close(self) -> None:
        """Close every connection."""


class WebsiteContentTool:
    """Rules:
    - Only requests that the egress guard permits are sent.
    - Fetching and reading share the call's time.
    - The text is cut at `max_chars` with a notice.

    `open_fetcher` loads the HTTP client at the first call.
    """

    def __init__(self, *, open_fetcher: Callable[[], Fetcher], extractor: TextExtractor) -> None:
        self._extractor = extractor
        self._fetcher = LazyClosable(open_fetcher)

    @property
    def tool(self) -> Tool:
        return WEBSITE_CONTENT

    async def run(self, arguments: JsonObject, context: NativeToolContext) -> NativeToolOutput:
        """Title, URL and text. Raises NativeToolError `website_…` or `extraction_…`."""
        url, max_chars = arguments["url"], arguments.get("max_chars", DEFAULT_CHARACTERS)
        if not isinstance(url, str) or not isinstance(max_chars, int | float):
            raise TypeError("arguments are validated before a tool runs")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + context.timeout_s * _SHARE
        fetcher = await self._fetcher.warm()
        timeout = asyncio.timeout_at(deadline)
        try:
            async with timeout:
                page = await fetcher.fetch(url)
        except TimeoutError as error:
            if not timeout.expired():
                raise
            sentence = f"The website did not answer completely within {context.timeout_s:g} seconds."
            raise NativeToolError("website_timeout", sentence) from error
        try:
            text = await self._extractor.extract(
                page.data, page.media_type, timeout_s=max(deadline - loop.time(), 0.001)
            )
        except ServiceError as error:
            raise NativeToolError(error.code, error.detail) from error
        return NativeToolOutput(value=_rendered(page.url, text, int(max_chars)))

    async def close(self) -> None:
        await self._fetcher.close()


def _rendered(url: str, found: ExtractedText, max_chars: int) -> str:
    text = found.text
    head = f"Title: {found.title}\nURL: {url}" if found.title else f"URL: {url}"
    if len(text) <= max_chars:
        return f"{head}\n\n{text}"
    notice = f"[Cut: these are the first {max_chars:,} of {len(text):,} characters.]"
    return f"{head}\n\n{text[:max_chars]}\n\n{notice}"
