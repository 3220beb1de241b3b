"""Tesseract as a program: pictures in, text with its places out. Without it pictures are skipped, and named."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

from msgspec import Struct

from dari.knowledge.parse.limits import ParseLimits

MIN_CONFIDENCE = 30.0
_LIST_S = 10.0
_WHOLE_PAGE, _ONE_COLUMN = "3", "4"  # page segmentation modes
_FEW_LETTERS = 200
_CELLS = 12


class OcrFailed(Exception):
    """Tesseract did not read a picture; the message says why."""


class OcrTimedOut(OcrFailed):
    """Tesseract was too slow, which may be the machine's fault and not the picture's."""


class OcrParagraph(Struct, frozen=True):
    text: str
    region: tuple[int, int, int, int]
    """x, y, width, height in pixels."""


def is_available() -> bool:
    return bool(shutil.which("tesseract")) and bool(_installed())


@cache
def _installed() -> frozenset[str]:
    """The languages that tesseract has here."""
    try:
        listed = subprocess.run(
            ["tesseract", "--list-langs"], capture_output=True, timeout=_LIST_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    return frozenset(line.strip() for line in listed.stdout.decode("utf-8", "replace").splitlines()[1:]) - {"osd", ""}


def languages(wanted: str) -> str:
    """Those of `kor+eng` that are installed, or whatever is."""
    have = [one for one in wanted.split("+") if one in _installed()]
    return "+".join(have or sorted(_installed())[:1])


def read_text(picture: bytes, limits: ParseLimits) -> str:
    """All text of a picture, a line for a line, paragraphs apart."""
    return "\n\n".join(passage.text for passage in read_passages(picture, limits))


def read_passages(picture: bytes, limits: ParseLimits) -> list[OcrParagraph]:
    """Its paragraphs with their places. OcrFailed when tesseract cannot read it."""
    found = _run(picture, limits, _WHOLE_PAGE)
    if _count_letters(found) < _FEW_LETTERS:
        # With few words on it a picture is often taken for one without text, or half of it is.
        found = max(found, _run(picture, limits, _ONE_COLUMN), key=_count_letters)
    return found


def _run(picture: bytes, limits: ParseLimits, layout: str) -> list[OcrParagraph]:
    # The table has boxes, the text has the spaces as they are: the table parts Hangul words into syllables.
    options = ("--psm", layout, "-c", "preserve_interword_spaces=1", "tsv", "txt")
    command = ["tesseract", "stdin", "stdout", "-l", languages(limits.ocr_languages), *options]
    try:
        done = subprocess.run(
            command,
            input=picture,
            capture_output=True,
            timeout=limits.ocr_page_timeout_s,
            check=False,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        )
    except subprocess.TimeoutExpired:
        limit_s = f"{limits.ocr_page_timeout_s:g} s"
        raise OcrTimedOut(f"tesseract took longer than {limit_s}; kebab ingest --force-reingest tries again") from None
    except OSError as error:
        raise OcrFailed(f"tesseract does not run: {error.strerror}") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OcrFailed(f"tesseract cannot read the picture: {said[-1][:160] if said else done.returncode}")
    return _passages(done.stdout.decode("utf-8", "replace"))


def _passages(output: str) -> list[OcrParagraph]:
    """From tesseract's table (a row per word, with page, block, paragraph and line numbers, box and confidence) and the
    text that follows it, line for line the same words."""
    lines: dict[tuple[str, ...], list[_Word]] = {}
    written: list[str] = []
    for row in output.split("\n")[1:]:
        cells = row.split("\t")
        if len(cells) != _CELLS:
            written.append(row.strip("\f "))
        elif cells[0] == "5" and cells[11].strip() and (word := _read_word(cells)) is not None:
            lines.setdefault(tuple(cells[1:5]), []).append(word)
    texts = iter(line for line in written if line)
    found: dict[tuple[str, ...], list[str]] = {}
    boxes: dict[tuple[str, ...], list[tuple[int, int, int, int]]] = {}
    for key, words in lines.items():
        line = _join(words, next(texts, ""))
        if line:
            found.setdefault(key[:3], []).append(line)
            boxes.setdefault(key[:3], []).extend(word.box for word in words if word.is_sure)
    return [OcrParagraph("\n".join(rows), union(boxes[key])) for key, rows in found.items()]


class _Word(Struct, frozen=True):
    text: str
    box: tuple[int, int, int, int]
    """Left, top, right, bottom."""
    is_sure: bool


def _read_word(cells: list[str]) -> _Word | None:
    try:
        x, y, width, height = map(int, cells[6:10])
        return _Word(cells[11].strip(), (x, y, x + width, y + height), float(cells[10]) >= MIN_CONFIDENCE)
    except ValueError:
        return None


def _join(words: list[_Word], line: str) -> str:
    """The words that tesseract is sure of, with a space only where the line has one."""
    joined, at = "", 0
    for word in words:
        place = line.find(word.text, at)
        is_apart = place < 0 or line[at:place].strip() != line[at:place] or not at
        at = at if place < 0 else place + len(word.text)
        if word.is_sure:
            joined += f" {word.text}" if joined and is_apart else word.text
    return joined


def _count_letters(passages: list[OcrParagraph]) -> int:
    return sum(sum(map(str.isalnum, passage.text)) for passage in passages)


def union(boxes: list[tuple[int, int, int, int]]) -> tuple[int, int, int, int]:
    """The box around boxes of left, top, right, bottom, as x, y, width, height."""
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    return left, top, max(box[2] for box in boxes) - left, max(box[3] for box in boxes) - top
