"""The reference of all settings, from the class that reads them. It is committed, for those who
read in a checkout or on a forge: a test holds it against the class."""

from collections.abc import Iterator

from pydantic.fields import FieldInfo

from docsite.setting_meanings import MEANINGS
from infrastructure.settings import Settings, variable_name

SETTINGS_PAGE = "docs/reference/settings.md"

_INTRODUCTION = """# Settings

Environment variables. A wrong value fails at start with its name, what is wrong and an example; a
`DRAGOMAN_…` variable that is no setting is warned about. `dragoman doctor` says what an
installation makes of them.

This page is written from the code: `make settings` renews it.
"""


def settings_page() -> str:
    """The page, in Markdown."""
    return "\n".join([_INTRODUCTION, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    unmentioned = Settings.model_fields.keys() - {name for section in MEANINGS.values() for name in section}
    if unmentioned:
        raise ValueError(f"docsite/setting_meanings.py does not say what these settings mean: {sorted(unmentioned)}")
    for title, meanings in MEANINGS.items():
        yield f"## {title}\n"
        yield "| variable | default | meaning |\n|---|---|---|"
        for name, meaning in meanings.items():
            field = Settings.model_fields[name]
            yield f"| `{variable_name(name)}` | {_default(field)} | {meaning} {_form(field)} |"
        yield ""


def _default(field: FieldInfo) -> str:
    if field.default is None or field.default == "":
        return ""
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _form(field: FieldInfo) -> str:
    """What a value looks like, as the message about a wrong one says."""
    example = f"`{field.examples[0]}`" if field.examples else ""
    parts = [part for part in (_sentence(field.description), f"Example: {example}." if example else "") if part]
    return " ".join(parts)


def _sentence(description: str | None) -> str:
    return "" if not description else f"{description[0].upper()}{description[1:]}."
