"""Lines of prose in Markdown: which are too long."""

from collections.abc import Iterator

MAX_WIDTH = 100


def too_long(text: str) -> Iterator[int]:
    """Numbers of the lines that are longer than `MAX_WIDTH` and could be broken.

    Code, tables, headings, comments and single words such as links are left as they are.
    """
    is_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.strip()
        if content.startswith("```"):
            is_code = not is_code
        elif not is_code and len(line) > MAX_WIDTH and _is_prose(content):
            yield number


def _is_prose(content: str) -> bool:
    return not content.startswith(("|", "#", "<!--")) and " " in content.removeprefix("- ")
