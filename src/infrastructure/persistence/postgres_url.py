"""A PostgreSQL URL as users write it, in the forms that its readers want; without importing a driver."""

from sqlalchemy import URL, make_url


def driver_url(url: str) -> URL:
    """`postgresql://…` as users write it, naming SQLAlchemy's driver."""
    return make_url(url).set(drivername="postgresql+psycopg")


def library_url(url: str) -> str:
    """The same as PostgreSQL's own client library takes it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
