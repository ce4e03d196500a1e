"""The HTTP interface: JSON and server-sent events over the use cases, with Litestar."""
