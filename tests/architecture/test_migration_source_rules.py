"""Code of earlier revisions works with the schema while a service is upgraded, or the revision says
that it does not."""

import ast
import re
from pathlib import Path

import pytest

from infrastructure.persistence.schema.revision import HEAD, OLDER, WORKS_WITH
from tests.architecture.migration_rules import chain, contractions, working_code

VERSIONS = Path(__file__).resolve().parents[2] / "src" / "infrastructure" / "persistence" / "migrations" / "versions"
FIRST_DECLARED = "0067"
"""Code of earlier revisions does not read what a schema says of other code."""

pytestmark = pytest.mark.requirement("K7")


def test_each_revision_expands_the_schema_or_says_that_it_contracts() -> None:
    migrations = chain(VERSIONS)
    assert migrations[-1].revision == HEAD
    for migration in migrations[1:]:
        assert migration.is_contract or not migration.contractions, (
            f"{migration.revision}: {migration.contractions}. Code of the revision before runs beside it: expand first and contract"
            " in a later version, or set `contract = True` (docs/adr/0085-versions-side-by-side.md)."
        )


def test_the_code_names_the_revisions_whose_code_works_with_its_schema() -> None:
    migrations = chain(VERSIONS)
    assert working_code(migrations, FIRST_DECLARED) == WORKS_WITH
    assert tuple(migration.revision for migration in migrations) == (*OLDER, *WORKS_WITH)


def test_the_guide_names_revisions_that_there_are_and_compares_none() -> None:
    guide = (VERSIONS.parents[4] / "docs" / "guides" / "upgrade.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^- Revision (\d{4})[,:]", guide, flags=re.MULTILINE))
    assert "0103" in named
    assert named <= {*OLDER, *WORKS_WITH}
    assert not re.search(r"before schema revision|revision \d{4} or later", guide)


@pytest.mark.parametrize(
    "statement",
    [
        "op.drop_column('run', 'lane')",
        "op.alter_column('run', 'lane', nullable=False)",
        "op.rename_table('run', 'runs')",
        "op.create_unique_constraint('uq', 'run', ['lane'])",
        "op.create_index('ix', 'run', ['lane'], unique=True)",
        "op.add_column('run', sa.Column('lane', sa.Text(), nullable=False))",
        "op.execute('ALTER TABLE run DROP COLUMN lane')",
        "op.execute(f'ALTER TABLE {table} ALTER  COLUMN lane TYPE text')",
    ],
)
def test_what_code_from_before_may_not_survive_is_found(statement: str) -> None:
    upgrade = f"def upgrade():\n    {statement}\ndef downgrade():\n    pass\n"
    assert list(contractions(ast.parse(upgrade)))
    assert not list(contractions(ast.parse(upgrade.replace("upgrade", "downgrade", 1))))


def test_what_code_from_before_does_not_notice_is_an_expansion() -> None:
    upgrade = (
        "def upgrade():\n"
        "    op.add_column('run', sa.Column('lane', sa.Text(), nullable=False, server_default='normal'))\n"
        "    op.add_column('run', sa.Column('note', sa.Text(), nullable=True))\n"
        "    op.create_index('ix', 'run', ['lane'])\n"
        "    op.create_table('lane', sa.Column('id', sa.Text(), nullable=False))\n"
        "    op.execute('CREATE TRIGGER told AFTER UPDATE ON lane')\n"
    )
    assert not list(contractions(ast.parse(upgrade)))


def test_a_contract_step_ends_the_work_of_code_from_before() -> None:
    migrations = chain(VERSIONS)
    assert working_code(migrations, migrations[-2].revision) == (migrations[-2].revision, migrations[-1].revision)
