"""Writes schema.sql, by which new SQLite databases are made, from the revisions:
`.venv/bin/python -m tests.integration.persistence.schema_script`."""

import sys
import tempfile
from pathlib import Path

from infrastructure.persistence.schema.new_database import SCRIPT, script_of
from infrastructure.persistence.schema.revision import plain_engine
from infrastructure.persistence.schema.upgrade import upgrade
from tests.databases import sqlite_url


def script_from_revisions(folder: Path) -> str:
    """The script, by way of a database in `folder` to which the revisions are applied."""
    url = sqlite_url(folder / "revisions.db")
    upgrade(url)
    engine = plain_engine(url)
    with engine.connect() as connection:
        script = script_of(connection)
    engine.dispose()
    return script


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        SCRIPT.write_text(script_from_revisions(Path(folder)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
