"""Small files of every format that is indexed, made on the spot: PDF by hand, the others by the libraries that write
them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence


def pdf(pages: Sequence[str], title: str = "") -> bytes:
    """A page per text, a line per line, in Helvetica; an empty text is an empty page."""
    objects: list[bytes] = []
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects.append(b"<< /Type /Catalog /Pages 2 0 R >>")
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, text in enumerate(pages):
        box = "/MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} /Contents {5 + 2 * number} 0 R >>".encode())
        shown = " ".join(f"({_escape(line)}) Tj T*" for line in text.split("\n"))
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET".encode() if text else b""
        objects.append(b"<< /Length %d >>\nstream\n" % len(stream) + stream + b"\nendstream")
    objects.append(f"<< /Title ({_escape(title)}) >>".encode())
    return _assemble(objects)


def pdf_of_objects(objects: Sequence[bytes]) -> bytes:
    """Objects 1, 2, … as they are; the first is the catalog, the last the information dictionary."""
    return _assemble(objects)


def picture_pdf(width: int, height: int, grey: bytes) -> bytes:
    """One page that is one picture, without a letter of text."""
    draw = f"q {width * 72 // 200} 0 0 {height * 72 // 200} 0 0 cm /I Do Q".encode()
    image = f"/Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceGray"
    return _assemble(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width * 72 // 200} {height * 72 // 200}] "
            "/Resources << /XObject << /I 5 0 R >> >> /Contents 4 0 R >>".encode(),
            b"<< /Length %d >>\nstream\n" % len(draw) + draw + b"\nendstream",
            f"<< {image} /BitsPerComponent 8 /Length {len(grey)} >>\nstream\n".encode() + grey + b"\nendstream",
            b"<< >>",
        ]
    )


def _assemble(objects: Sequence[bytes]) -> bytes:
    data, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (len(objects) + 1, len(objects))
    return bytes(data + b"startxref\n%d\n%%%%EOF\n" % start)


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def notebook(*cells: tuple[str, str, list[dict[str, object]]]) -> bytes:
    """Cells of type, source and outputs."""
    made = [{"cell_type": kind, "source": source, "outputs": outputs} for kind, source, outputs in cells]
    return json.dumps({"cells": made, "nbformat": 4, "metadata": {"language_info": {"name": "python"}}}).encode()


def archive(members: Mapping[str, bytes], base: bytes = b"") -> bytes:
    """A ZIP with these members, in place of those of the same name in `base`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        if base:
            with zipfile.ZipFile(io.BytesIO(base)) as old:
                for member in old.infolist():
                    if member.filename not in members:
                        made.writestr(member.filename, old.read(member))
        for name, content in members.items():
            made.writestr(name, content)
    return buffer.getvalue()
