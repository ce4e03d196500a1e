"""Headers that a connection has sent before: what was read from them once holds for each request that has the same."""


class KnownHeaders(list[tuple[bytes, bytes]]):
    """The headers of a request (ASGI). `read` is what its reader made of them and found good, kept for as long as the
    connection sends the same ones, byte for byte."""

    read: object = None
