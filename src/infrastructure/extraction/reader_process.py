"""The process that reads documents: loads the libraries once, and forks a child for each document.

Started as `python -I -m infrastructure.extraction.reader_process FD`. Above:
`process_extractor.py`; below: the forking process.
"""

import contextlib
import encodings
import importlib
import json
import pkgutil
import socket
import sys

import pypdf
import trafilatura

from infrastructure.extraction.documents import DocumentError, DocumentFault, read_document
from infrastructure.extraction.wire import Job, encoded_answer, encoded_fault
from infrastructure.forking import forking_process
from infrastructure.forking.wire import REQUEST


def serve(connection: socket.socket) -> None:
    """Read one document, in a confined process that can open no file, socket or process."""
    with connection.makefile("rb") as incoming:
        head_size, size = REQUEST.unpack(incoming.read(REQUEST.size))
        job = Job(**json.loads(incoming.read(head_size)))
        confine(job)
        data = incoming.read(size)
    try:
        document = read_document(data, job.media_type, max_characters=job.max_characters)
        answer = encoded_answer(document.title, document.pages)
    except DocumentError as error:
        answer = (encoded_fault(error.fault),)
    except OSError:  # documents are bytes: a file that cannot be opened should have been loaded before
        answer = (encoded_fault(DocumentFault.INTERNAL),)
    except MemoryError:
        answer = (encoded_fault(DocumentFault.TOO_COSTLY),)
    except Exception:  # noqa: BLE001  # a hostile document can raise any exception
        answer = (encoded_fault(DocumentFault.UNREADABLE),)
    for part in answer:
        connection.sendall(part)


def confine(job: Job) -> None:
    """Give up everything that reading does not need."""
    forking_process.confine(max_memory_bytes=job.max_memory_bytes, cpu_s=job.cpu_s)


def load_all() -> None:
    """Load all charsets and lazily imported parts of the libraries, because children cannot open
    files."""
    for package in (encodings, pypdf, trafilatura):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                with contextlib.suppress(ImportError):  # modules for other systems, or with missing extras
                    importlib.import_module(module.name)


def warm_up() -> None:
    """Read small pages, because libraries also load data late: one with a main text, one without,
    one of unknown charset."""
    paragraph = "<p>A paragraph that is long enough to be taken for the main text of a page.</p>" * 5
    article = f"<html><head><title>t</title></head><body><article>{paragraph}</article></body></html>".encode()
    for page in (article, b"<html><title>t</title><p>x</p></html>", article.replace(b"A", b"\xe9")):
        with contextlib.suppress(DocumentError):
            read_document(page, "text/html", max_characters=10_000)


def load() -> None:
    load_all()
    warm_up()


def main(arguments: list[str]) -> int:
    """Run until the service ends."""
    forking_process.run_forking(int(arguments[0]), load, serve)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
