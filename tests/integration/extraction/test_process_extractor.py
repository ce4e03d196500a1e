"""Text out of real documents, in real child processes: what is read, what is refused, and that
bombs harm nobody."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from application.extraction.ports import ExtractedText
from domain.errors import ServiceError
from infrastructure.extraction.process_extractor import ExtractionLimits, ProcessTextExtractor
from tests.integration.extraction.pdf_files import pdf, pdf_bomb
from tests.integration.extraction.processes import processes_below

MIB = 1024 * 1024
PATIENCE_S = 90
"""The reader loads its libraries before it reads the first document."""
ARTICLE = """<!doctype html><html><head><title>On
 Herons &amp; Tides</title><style>p {color: red}</style></head><body>
<nav><a href="/">Home</a> <a href="/login">Sign in</a></nav>
<article><h1>On Herons</h1>
<p>Herons stand still for a long time before they strike, and they strike in the fraction of a second.</p>
<p>At low tide the flats hold small fish, and that is when most of the birds of the colony come to feed.</p>
<table><tr><th>Month</th><th>Birds</th></tr><tr><td>May</td><td>41</td></tr></table></article>
<script>track("everyone")</script><footer>Imprint, privacy, cookies</footer></body></html>"""

CONFINED = """\
import os, socket
from infrastructure.extraction import reader_process as reader
from infrastructure.extraction.wire import Job
reader.confine(Job(media_type='', max_characters=1, max_memory_bytes=1 << 26, cpu_s=5))
def refused(attempt):
    try: attempt()
    except (OSError, MemoryError): return True
    return False
attempts = [lambda: open('/etc/passwd'), socket.socket, os.pipe, lambda: bytearray(1 << 27)]
os.write(1, str([refused(attempt) for attempt in attempts]).encode())
"""
SERVICE = """\
import asyncio
from infrastructure.extraction.process_extractor import ProcessTextExtractor
async def main():
    extractor = ProcessTextExtractor()
    await extractor.extract(b'x', 'text/plain', timeout_s=90)
    slow = b'<p ' + b' '.join(b'a%d=1' % n for n in range(2_000_000)) + b'>'
    print('ready', flush=True)
    await extractor.extract(slow, 'text/html', timeout_s=60)
asyncio.run(main())
"""


@pytest.fixture
async def extractor() -> AsyncIterator[ProcessTextExtractor]:
    extractor = ProcessTextExtractor(
        limits=ExtractionLimits(max_bytes=40 * MIB, max_characters=5_000_000, max_memory_bytes=256 * MIB)
    )
    yield extractor
    await extractor.close()


async def read(extractor: ProcessTextExtractor, data: bytes, media_type: str) -> ExtractedText:
    return await extractor.extract(data, media_type, timeout_s=PATIENCE_S)


async def failure(
    extractor: ProcessTextExtractor, data: bytes, media_type: str, timeout_s: float = PATIENCE_S
) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        await extractor.extract(data, media_type, timeout_s=timeout_s)
    return caught.value


def readers() -> list[int]:
    """Reader processes below this one, and the children of those."""
    return processes_below("reader_process")


async def until(holds: Callable[[], bool]) -> None:
    """Processes do not tell when they are gone: look again until it is so."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.mark.requirement("D2")
async def test_the_main_text_of_a_page_is_read_without_what_surrounds_it(extractor: ProcessTextExtractor) -> None:
    found = await read(extractor, ARTICLE.encode(), "text/html; charset=utf-8")

    assert found.title == "On Herons & Tides"
    assert "# On Herons" in found.text
    assert "strike in the fraction of a second." in found.text
    assert "| May | 41 |" in found.text
    assert not any(noise in found.text for noise in ("Sign in", "track", "color: red", "Imprint"))


@pytest.mark.requirement("D2")
async def test_the_text_of_a_pdf_is_read_page_by_page(extractor: ProcessTextExtractor) -> None:
    found = await read(
        extractor, pdf("First page", "", "The third \xe9t\xe9", title="Annual\nreport"), "application/pdf"
    )

    assert found.title == "Annual report"
    assert found.pages == ("First page", "", "The third été")
    assert found.text == "First page\n\nThe third été"


@pytest.mark.requirement("D2")
async def test_an_encrypted_pdf_that_anybody_may_open_is_read_and_another_is_not(
    extractor: ProcessTextExtractor,
) -> None:
    assert (await read(extractor, pdf("For all", password=""), "application/pdf")).text == "For all"
    refused = await failure(extractor, pdf("For some", password="secret"), "application/pdf")

    assert refused.code == "extraction_unreadable"
    assert "encrypted" in refused.detail


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        ("Zürich, 5 €\nName".encode(), "text/plain"),
        ("Zürich, 5 €\nName".encode(), "text/plain; charset=iso-8859-1"),  # a wrong declaration
        ("Zürich, 5 €\r\nName".encode("cp1252"), "text/csv; charset=ISO-8859-1"),  # Latin-1 means this on the web
        ("Zürich, 5 €\nName".encode("utf-16"), "text/markdown"),
        ("Zürich, 5 €\nName".encode("utf-8-sig"), "application/json; charset=nonsense"),
    ],
)
async def test_text_in_any_charset_is_decoded(extractor: ProcessTextExtractor, data: bytes, media_type: str) -> None:
    assert (await read(extractor, data, media_type)).text == "Zürich, 5 €\nName"


async def test_a_page_that_names_its_charset_itself_is_decoded_by_it(extractor: ProcessTextExtractor) -> None:
    page = f'<html><head><meta charset="shift_jis"><title>題</title></head><body><p>{"日本語の本文。" * 20}</p></body></html>'

    found = await read(extractor, page.encode("shift_jis"), "text/html")

    assert found.title == "題"
    assert "日本語の本文。" in found.text


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    ("data", "media_type", "code"),
    [
        (b"\x89PNG", "image/png", "extraction_unsupported"),
        (b"", "", "extraction_unsupported"),
        (b"%PDF-1.7 and nothing else", "application/pdf", "extraction_unreadable"),
        (b"MZ\0\0\1\0", "text/plain", "extraction_unreadable"),
        (pdf("", ""), "application/pdf", "extraction_no_text"),
        (b"", "text/html", "extraction_no_text"),
        (b"<html><script>all()</script></html>", "text/html", "extraction_no_text"),
        (b" " * (40 * MIB + 1), "text/plain", "extraction_too_large"),
        (b"x" * 5_000_001, "text/plain", "extraction_too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_has_no_text_is_refused_with_its_reason(
    extractor: ProcessTextExtractor, data: bytes, media_type: str, code: str
) -> None:
    assert (await failure(extractor, data, media_type)).code == code


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(b"<div>" * 500_000 + b"x", id="deep nesting"),
        pytest.param(b"<table><tr><td>x" * 100_000, id="nothing closed"),
        pytest.param(b"<p>x" * 5_000_000, id="millions of elements"),
        pytest.param(b"<p " + b" ".join(b"a%d=1" % n for n in range(1_000_000)) + b">x</p>", id="a million attributes"),
        pytest.param(
            b'<!DOCTYPE html [<!ENTITY a "ha"><!ENTITY b "' + b"&a;" * 1000 + b'">]><p>' + b"&b;" * 1000 + b"</p>",
            id="entities that multiply",
        ),
    ],
)
async def test_an_html_bomb_ends_with_its_child_and_the_next_document_is_read(
    extractor: ProcessTextExtractor, bomb: bytes
) -> None:
    await read(extractor, b"warm", "text/plain")

    # Some are defused rather than refused: then there is a text, of a size that its source
    # explains.
    outcome = await asyncio.gather(extractor.extract(bomb, "text/html", timeout_s=3), return_exceptions=True)

    match outcome[0]:
        case ServiceError() as refused:
            assert refused.code in {"extraction_too_costly", "extraction_timeout", "extraction_no_text"}
        case found:
            assert isinstance(found, ExtractedText)
            assert len(found.text) <= len(bomb)
    assert (await read(extractor, ARTICLE.encode(), "text/html")).title == "On Herons & Tides"


@pytest.mark.requirement("D2")
async def test_a_pdf_that_inflates_beyond_measure_is_refused(extractor: ProcessTextExtractor) -> None:
    bomb = pdf_bomb(400)
    assert len(bomb) < MIB

    refused = await failure(extractor, bomb, "application/pdf", timeout_s=5)

    assert refused.code in {"extraction_too_costly", "extraction_timeout"}


@pytest.mark.requirement("D2")
async def test_a_document_that_takes_too_long_is_given_up_and_its_child_killed(
    extractor: ProcessTextExtractor,
) -> None:
    await read(extractor, b"warm", "text/plain")
    await until(lambda: len(readers()) == 1)
    (reader,) = readers()

    refused = await failure(
        extractor, b"<p " + b" ".join(b"a%d=1" % n for n in range(1_000_000)) + b">", "text/html", 0.3
    )

    assert refused.code == "extraction_timeout"
    assert refused.detail == "The document could not be read within 0.3 seconds."
    await until(lambda: readers() == [reader])


@pytest.mark.requirement("D2")
async def test_a_cancelled_extraction_kills_its_child(extractor: ProcessTextExtractor) -> None:
    await read(extractor, b"warm", "text/plain")
    await until(lambda: len(readers()) == 1)
    (reader,) = readers()
    slow = b"<p " + b" ".join(b"a%d=1" % n for n in range(1_000_000)) + b">"
    task = asyncio.create_task(extractor.extract(slow, "text/html", timeout_s=30))
    await until(lambda: len(readers()) == 2)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: readers() == [reader])


@pytest.mark.requirement("D2")
async def test_a_child_can_neither_open_files_and_sockets_nor_start_processes() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", CONFINED, stdout=asyncio.subprocess.PIPE)

    said, _ = await process.communicate()

    assert said == b"[True, True, True, True]"


@pytest.mark.requirement("D2")
async def test_the_loop_stays_free_and_documents_are_read_at_the_same_time(extractor: ProcessTextExtractor) -> None:
    found = await asyncio.gather(*[read(extractor, f"text {n}".encode(), "text/plain") for n in range(20)])

    assert [text.text for text in found] == [f"text {n}" for n in range(20)]
    await until(lambda: len(readers()) == 1)  # of the children none is left


async def test_a_reader_that_was_killed_is_replaced(extractor: ProcessTextExtractor) -> None:
    await read(extractor, b"one", "text/plain")
    await until(lambda: len(readers()) == 1)
    (reader,) = readers()

    os.kill(reader, 9)
    await until(lambda: not readers())

    assert (await read(extractor, b"two", "text/plain")).text == "two"


async def test_the_reader_ends_when_nobody_needs_it_and_comes_back() -> None:
    extractor = ProcessTextExtractor(idle_timeout_s=0)
    await read(extractor, b"one", "text/plain")

    await until(lambda: not readers())

    assert (await read(extractor, b"two", "text/plain")).text == "two"
    await extractor.close()
    await until(lambda: not readers())


@pytest.mark.requirement("D2")
async def test_reader_and_children_end_with_the_service() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVICE, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    await until(lambda: len(readers()) == 2)
    started = readers()

    process.kill()
    await process.wait()

    await until(lambda: not any(_is_running(pid) for pid in started))


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
