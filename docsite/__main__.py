"""`python -m docsite`: everything the site is built of, under build/docs. `--write-settings` renews
what is committed."""

import argparse
from pathlib import Path

from docsite.chart_settings import CHART_SCHEMA, chart_schema
from docsite.pages import assemble
from docsite.settings_reference import SETTINGS_PAGE, settings_page

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docsite", description=__doc__)
    renewed = f"renew {SETTINGS_PAGE} and the list in {CHART_SCHEMA} from the settings class"
    parser.add_argument("--write-settings", action="store_true", help=renewed)
    if parser.parse_args().write_settings:
        (ROOT / SETTINGS_PAGE).write_text(settings_page(), encoding="utf-8")
        schema = (ROOT / CHART_SCHEMA).read_text(encoding="utf-8")
        (ROOT / CHART_SCHEMA).write_text(chart_schema(schema), encoding="utf-8")
        return
    assemble(ROOT, ROOT / "build" / "docs")


main()
