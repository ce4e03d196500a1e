"""Small PDF files, made by hand: pages of text, scans without any, and files that are after the
reader."""

import io
import zlib

import pypdf


def pdf(*pages: str, title: str | None = None, password: str | None = None) -> bytes:
    """A file with one line of text on each page; none on the page of an empty text."""
    return built([f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET".encode("latin-1") for page in pages], title, password)


def pdf_bomb(megabytes: int) -> bytes:
    """One page whose content is tiny in the file and huge when it is inflated."""
    stream = zlib.compress(b"BT (x) Tj ET " * (megabytes * 1024 * 1024 // 13), 9)
    return _file([(stream, b"/Filter /FlateDecode ")])


def built(contents: list[bytes], title: str | None = None, password: str | None = None) -> bytes:
    """A file whose pages have these content streams."""
    data = _file([(content, b"") for content in contents])
    if title is None and password is None:
        return data
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    if title is not None:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(password, algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _file(contents: list[tuple[bytes, bytes]]) -> bytes:
    pages = range(4, 4 + 2 * len(contents), 2)
    kids = b" ".join(b"%d 0 R" % page for page in pages)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(contents)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for page, (content, filters) in zip(pages, contents, strict=True):
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (page + 1),
            b"<< %s/Length %d >>\nstream\n%s\nendstream" % (filters, len(content), content),
        ]
    data, offsets = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return data + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        size,
        table,
        size,
        len(data),
    )
