"""Who adds a revision also writes down the schema it leads to."""

from infrastructure.persistence.schema.new_database import SCRIPT, revision_of
from infrastructure.persistence.schema.revision import HEAD


def test_the_script_of_new_databases_is_of_the_newest_revision() -> None:
    assert revision_of(SCRIPT.read_text(encoding="utf-8")) == HEAD, "make schema"
