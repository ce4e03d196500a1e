"""The public address of the service: DRAGOMAN_PUBLIC_URL, otherwise the address that it
listens on."""

from urllib.parse import urlsplit

_ANYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104  # compared with, not listened on


class ListeningAddress:
    """Without a configured URL the address is unknown until the service listens."""

    def __init__(self, configured: str | None) -> None:
        self._configured = configured
        self._listening: str | None = None

    @property
    def url(self) -> str | None:
        """The URL without a trailing slash."""
        return self._configured or self._listening

    def listening_on(self, url: str) -> None:
        """The service accepts connections. A wildcard address becomes the local one."""
        parts = urlsplit(url)
        self._listening = f"http://127.0.0.1:{parts.port}" if parts.hostname in _ANYWHERE else url
