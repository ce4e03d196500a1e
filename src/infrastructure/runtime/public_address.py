"""Where people reach the service: DRAGOMAN_PUBLIC_URL, else the address it listens on."""

from urllib.parse import urlsplit

_ANYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104  # compared with, not listened on


class ListeningAddress:
    """The `PublicAddress` port. Without a configured URL it is unknown until the service listens."""

    def __init__(self, configured: str | None) -> None:
        self._configured = configured
        self._listening: str | None = None

    @property
    def url(self) -> str | None:
        """Without a slash at its end."""
        return self._configured or self._listening

    def listening_on(self, url: str) -> None:
        """The service accepts connections. Who listens everywhere is reached on this machine at least."""
        parts = urlsplit(url)
        self._listening = f"http://127.0.0.1:{parts.port}" if parts.hostname in _ANYWHERE else url
