"""Addresses of PostgreSQL: as users write them, and as the drivers take them."""

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from infrastructure.persistence.engine.postgres.url import driver_url, library_url

URL = "postgresql://ada:s%40fe@db.internal:5433/dragoman?sslmode=require"


def test_an_address_keeps_all_it_says() -> None:
    taken = conninfo_to_dict(library_url(URL))
    wanted = {"user": "ada", "password": "s@fe", "host": "db.internal", "port": "5433", "dbname": "dragoman"}
    assert {**taken, **wanted, "sslmode": "require"} == taken
    assert (driver_url(URL).drivername, driver_url(URL).password) == ("postgresql+psycopg", "s@fe")


@pytest.mark.requirement("E6")
def test_a_server_that_is_gone_without_a_word_is_noticed_within_half_a_minute() -> None:
    taken = conninfo_to_dict(library_url(URL))
    silence = int(str(taken["keepalives_idle"])) + int(str(taken["keepalives_interval"])) * int(
        str(taken["keepalives_count"])
    )
    assert silence <= 30
    assert int(str(taken["tcp_user_timeout"])) <= 30_000
    assert driver_url(URL).query["connect_timeout"] == taken["connect_timeout"] == "5"


def test_what_an_address_says_of_that_itself_stands() -> None:
    taken = conninfo_to_dict(library_url(f"{URL}&connect_timeout=60&keepalives_idle=99"))
    assert (taken["connect_timeout"], taken["keepalives_idle"]) == ("60", "99")


@pytest.mark.requirement("K6")
@pytest.mark.parametrize(
    ("hosts", "host", "port"),
    [
        ("a.internal:5433,b.internal:5434", "a.internal,b.internal", "5433,5434"),
        ("a.internal,b.internal:5434", "a.internal,b.internal", ",5434"),
        ("[::1]:5433,[::2]:5434", "::1,::2", "5433,5434"),
    ],
)
def test_of_several_hosts_the_one_is_used_that_takes_writes(hosts: str, host: str, port: str) -> None:
    url = f"postgresql://ada:s%40fe@{hosts}/dragoman?sslmode=require"
    taken = conninfo_to_dict(library_url(url))
    wanted = {"user": "ada", "password": "s@fe", "host": host, "port": port, "dbname": "dragoman", "sslmode": "require"}
    assert {**taken, **wanted, "target_session_attrs": "read-write"} == taken
    _, arguments = PGDialect_psycopg().create_connect_args(driver_url(url))  # type: ignore[no-untyped-call]
    assert {name: arguments[name] for name in ("host", "port")} == {"host": host, "port": port}


def test_which_of_several_hosts_is_used_may_be_said() -> None:
    taken = conninfo_to_dict(library_url("postgresql://a,b/dragoman?target_session_attrs=any"))
    assert taken["target_session_attrs"] == "any"


@pytest.mark.parametrize("password", ["s,fe", "s,f/e", "s,f?e#"])
def test_a_comma_in_a_password_names_no_hosts(password: str) -> None:
    taken = driver_url(f"postgresql://ada:{password}@db.internal/dragoman")
    assert (taken.password, taken.host, taken.database) == (password, "db.internal", "dragoman")


def test_a_port_that_is_no_number_is_the_librarys_to_refuse() -> None:
    taken = conninfo_to_dict(library_url("postgresql://ada:secret@a:x,b/dragoman"))
    assert (taken["host"], taken["port"]) == ("a,b", "x,")
