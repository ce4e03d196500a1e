"""A PostgreSQL URL as users write it, in the forms that its readers want; without importing a
driver."""

import re
from typing import Final

from sqlalchemy import URL, make_url

NOTICING: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""How soon a server that is gone without a word (its machine, or the network) counts as lost:
within half a minute, where the kernel's default is hours (PostgreSQL, 32.1.2, Parameter Key Words).
Of no effect on sockets of this machine."""

_HOSTS: Final = re.compile(r"(?P<login>[^:]+://(?:[^:/@]*(?::[^@]*)?@)?)(?P<hosts>[^/?#]*)(?P<rest>.*)", re.DOTALL)
"""As SQLAlchemy parses it: a password may have any character but `@`."""
_HOST: Final = re.compile(r"(?P<name>\[[^\]]*\]|[^:]*)(?::(?P<port>.*))?")


def driver_url(url: str) -> URL:
    """`postgresql://…` as users write it, naming SQLAlchemy's driver."""
    return _noticing(url).set(drivername="postgresql+psycopg")


def library_url(url: str) -> str:
    """The same as PostgreSQL's own client library takes it."""
    return _noticing(url).set(drivername="postgresql").render_as_string(hide_password=False)


def named_url(url: str, name: str) -> str:
    """The URL with the name that its connections have, unless it names them itself."""
    parsed = _parsed(url)
    if "application_name" in parsed.query:
        return url
    return parsed.update_query_dict({"application_name": name}).render_as_string(hide_password=False)


def _noticing(url: str) -> URL:
    """What the URL says itself stands."""
    parsed = _parsed(url)
    return parsed.update_query_dict({name: value for name, value in NOTICING.items() if name not in parsed.query})


def _parsed(url: str) -> URL:
    """A URL with several hosts (`host:5432,other:5433`; PostgreSQL, 32.1.1.3) names them in its
    query, which drivers and library understand alike. Of several, the one that takes writes is
    used."""
    found = _HOSTS.match(url)
    if found is None or "," not in found["hosts"]:
        return make_url(url)
    hosts = [_HOST.fullmatch(host) for host in found["hosts"].split(",")]
    query = {
        "host": ",".join(host["name"].strip("[]") if host else "" for host in hosts),
        "port": ",".join(host["port"] or "" if host else "" for host in hosts),
    }
    alone = make_url(found["login"] + found["rest"])
    return alone.update_query_dict({"target_session_attrs": "read-write", **alone.query, **query})
