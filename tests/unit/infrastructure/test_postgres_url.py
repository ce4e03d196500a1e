"""Addresses of PostgreSQL: as users write them, and as the drivers take them."""

import pytest
from psycopg.conninfo import conninfo_to_dict

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
