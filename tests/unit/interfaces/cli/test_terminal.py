"""What reaches the terminal."""

import io

import pytest

from interfaces.cli.terminal import Terminal, duration, one_line, printable, short_json
from tests.unit.interfaces.cli.fake_service import TerminalStream


def test_a_table_off_a_terminal_is_aligned_text() -> None:
    out = io.StringIO()
    Terminal(out=out, err=io.StringIO()).table(("name", "kind"), [("a", "one"), ("longer", "")], empty="none")
    assert out.getvalue() == "NAME    KIND\na       one\nlonger\n"


def test_a_table_on_a_terminal_shows_the_same_cells_and_no_markup_of_theirs() -> None:
    out = TerminalStream()
    Terminal(out=out, err=TerminalStream()).table(("name", "kind"), [("[bold]a", "one")], empty="none")
    assert "[bold]a" in out.getvalue()


def test_an_empty_table_is_a_remark() -> None:
    out, err = io.StringIO(), io.StringIO()
    Terminal(out=out, err=err).table(("name",), [], empty="There is nothing.")
    assert (out.getvalue(), err.getvalue()) == ("", "There is nothing.\n")


def test_empty_fields_are_left_out() -> None:
    out = io.StringIO()
    Terminal(out=out, err=io.StringIO()).fields({"id": "x", "error": "", "state": "y"})
    assert out.getvalue() == "id     x\nstate  y\n"


@pytest.mark.parametrize("show", [Terminal.line, Terminal.note, Terminal.stream])
def test_nothing_that_is_shown_steers_the_terminal(show: object) -> None:
    assert callable(show)
    streams = [io.StringIO(), io.StringIO()]
    show(Terminal(out=streams[0], err=streams[1]), "a\x1b]0;title\x07\x9b31m\r\u202eb\tc\nd")
    shown = "".join(stream.getvalue() for stream in streams)
    assert "\ufffd" in shown
    assert not {"\x1b", "\x07", "\x9b", "\r", "\u202e"} & set(shown)
    assert "b\tc\nd" in shown


def test_hidden_characters_are_shown_as_escapes() -> None:
    assert printable("invoice\u202efdp.exe\U000e0041 👩\u200d💻") == "invoice\\u202efdp.exe\\U000e0041 👩\u200d💻"


def test_line_ends_of_other_systems_are_line_ends() -> None:
    assert printable("a\r\nb") == "a\nb"


def test_one_line_is_one_and_no_longer_than_asked() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("abcdef", 4) == "abc…"
    assert short_json({"a": ["ü\n"]}) == '{"a": ["ü\\n"]}'
    assert len(short_json({"a": "x" * 500})) == 80


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(0, "0 ms"), (999, "999 ms"), (2500, "2.5 s"), (125_000, "2 min 5 s")]
)
def test_durations_read_well(milliseconds: float, text: str) -> None:
    assert duration(milliseconds) == text
