"""Sources of other versions: the one after this, which does not exist yet, and those of the
history."""

import re
import shutil
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from infrastructure.persistence.schema.revision import HEAD, WORKS_WITH
from tests.e2e.service import ROOT

NEXT = "9001"
_REVISION = """\
import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{down_revision}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run", sa.Column("of_next", sa.Text(), nullable=False, server_default="nothing"))
    op.add_column("tool_call", sa.Column("of_next", sa.Text(), nullable=True))
    op.create_index("ix_run_of_next", "run", ["of_next"])
    op.create_table("next", sa.Column("id", sa.Text(), primary_key=True))
"""


def next_version(folder: Path, *, contracts: bool = False) -> Path:
    """The `src` of a version whose schema has one revision more. With `contracts`, code of this
    version does not work with it."""
    source = folder / ("contracting" if contracts else "next") / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    persistence = source / "infrastructure" / "persistence"
    revision = _REVISION.format(revision=NEXT, down_revision=HEAD)
    (persistence / "migrations" / "versions" / f"{NEXT}_next.py").write_text(revision, encoding="utf-8")
    file = persistence / "schema" / "revision.py"
    works_with = (NEXT,) if contracts else (*WORKS_WITH, NEXT)
    code = file.read_text(encoding="utf-8").replace(f'HEAD = "{HEAD}"', f'HEAD = "{NEXT}"', 1)
    code, count = re.subn(
        r"^WORKS_WITH = \(.*?\)$", f"WORKS_WITH = {works_with!r}", code, flags=re.MULTILINE | re.DOTALL
    )
    assert count == 1
    file.write_text(code, encoding="utf-8")
    return source


def version_of(commit: str, folder: Path) -> Path:
    """The `src` of a commit of this repository."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder / commit, filter="data")
    return folder / commit / "src"
