"""Texts in CSV files, which spreadsheets open."""


def plain(text: str) -> str:
    """A text that spreadsheets do not take for a formula."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text
