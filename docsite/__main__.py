"""`python -m docsite`: everything the site is built of, under build/docs. `--write-settings` renews the one committed reference."""

import argparse
from pathlib import Path

from docsite.pages import assemble
from docsite.settings_reference import SETTINGS_PAGE, settings_page

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docsite", description=__doc__)
    parser.add_argument("--write-settings", action="store_true", help=f"renew {SETTINGS_PAGE} from the settings class")
    if parser.parse_args().write_settings:
        (ROOT / SETTINGS_PAGE).write_text(settings_page(), encoding="utf-8")
        return
    assemble(ROOT, ROOT / "build" / "docs")


main()
