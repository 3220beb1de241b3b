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


class OcrFailed(Exception):
    """Tesseract did not read a picture; the message says why."""


class Passage(Struct, frozen=True):
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


def read_passages(picture: bytes, limits: ParseLimits) -> list[Passage]:
    """Its paragraphs with their places. OcrFailed when tesseract cannot read it."""
    command = ["tesseract", "stdin", "stdout", "-l", languages(limits.ocr_languages), "--psm", "3", "tsv"]
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
        raise OcrFailed(f"tesseract took longer than {limits.ocr_page_timeout_s:g} s") from None
    except OSError as error:
        raise OcrFailed(f"tesseract does not run: {error.strerror}") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OcrFailed(f"tesseract cannot read the picture: {said[-1][:160] if said else done.returncode}")
    return _passages(done.stdout.decode("utf-8", "replace"))


def _passages(table: str) -> list[Passage]:
    """From tesseract's table: a row per word, with page, block, paragraph and line numbers, box and confidence."""
    found: dict[tuple[str, ...], dict[str, list[str]]] = {}
    boxes: dict[tuple[str, ...], list[tuple[int, int, int, int]]] = {}
    for row in table.splitlines()[1:]:
        cells = row.split("\t")
        if len(cells) < 12 or cells[0] != "5" or not cells[11].strip():
            continue
        try:
            x, y, width, height = map(int, cells[6:10])
            confidence = float(cells[10])
        except ValueError:
            continue
        if confidence < MIN_CONFIDENCE:
            continue
        key = tuple(cells[1:4])
        found.setdefault(key, {}).setdefault(cells[4], []).append(cells[11].strip())
        boxes.setdefault(key, []).append((x, y, x + width, y + height))
    return [
        Passage("\n".join(" ".join(words) for words in rows.values()), union(boxes[key])) for key, rows in found.items()
    ]


def union(boxes: list[tuple[int, int, int, int]]) -> tuple[int, int, int, int]:
    """The box around boxes of left, top, right, bottom, as x, y, width, height."""
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    return left, top, max(box[2] for box in boxes) - left, max(box[3] for box in boxes) - top
