"""Syllables of pinyin, and how a run of letters falls apart into them."""

from __future__ import annotations

_FINALS = {
    "": "a o e ai ei ao ou an en ang eng er",
    "b": "a o ai ei ao an en ang eng i ie iao ian in ing u",
    "p": "a o ai ei ao ou an en ang eng i ie iao ian in ing u",
    "m": "a o e ai ei ao ou an en ang eng i ie iao iu ian in ing u",
    "f": "a o ei ou an en ang eng u",
    "d": "a e ai ei ao ou an en ang eng ong i ia ie iao iu ian ing u uo ui uan un",
    "t": "a e ai ao ou an ang eng ong i ie iao ian ing u uo ui uan un",
    "n": "a e ai ei ao ou an en ang eng ong i ie iao iu ian in iang ing u uo uan v ve ue",
    "l": "a o e ai ei ao ou an ang eng ong i ia ie iao iu ian in iang ing u uo uan un v ve ue",
    "g": "a e ai ei ao ou an en ang eng ong u ua uo uai ui uan un uang",
    "k": "a e ai ei ao ou an en ang eng ong u ua uo uai ui uan un uang",
    "h": "a e ai ei ao ou an en ang eng ong u ua uo uai ui uan un uang",
    "j": "i ia ie iao iu ian in iang ing iong u ue uan un",
    "q": "i ia ie iao iu ian in iang ing iong u ue uan un",
    "x": "i ia ie iao iu ian in iang ing iong u ue uan un",
    "zh": "a e ai ei ao ou an en ang eng ong i u ua uo uai ui uan un uang",
    "ch": "a e ai ao ou an en ang eng ong i u ua uo uai ui uan un uang",
    "sh": "a e ai ei ao ou an en ang eng i u ua uo uai ui uan un uang",
    "r": "e ao ou an en ang eng ong i u ua uo ui uan un",
    "z": "a e ai ei ao ou an en ang eng ong i u uo ui uan un",
    "c": "a e ai ao ou an en ang eng ong i u uo ui uan un",
    "s": "a e ai ao ou an en ang eng ong i u uo ui uan un",
    "y": "a o e ao ou an in ang ing ong i u ue uan un",
    "w": "a o ai ei an en ang eng u",
}
SYLLABLES = frozenset(initial + final for initial, finals in _FINALS.items() for final in finals.split())
_LONGEST = max(map(len, SYLLABLES))


def split_syllables(letters: str) -> tuple[tuple[str, ...], str]:
    """(syllables, letters left over at the end). `'` parts two that would else be read as one: xi'an."""
    done: list[str] = []
    runs = letters.split("'")
    for number, run in enumerate(runs):
        syllables, rest = _split(run)
        done += syllables
        if rest and number < len(runs) - 1:
            return tuple(done), "'".join([rest, *runs[number + 1 :]])
        if rest:
            return tuple(done), rest
    return tuple(done), ""


def _split(run: str) -> tuple[list[str], str]:
    """The division that covers the most letters, then the one with the fewest and longest syllables."""
    best: list[list[str] | None] = [None] * (len(run) + 1)
    best[0] = []
    for end in range(1, len(run) + 1):
        for start in range(max(0, end - _LONGEST), end):
            before = best[start]
            if before is None or run[start:end] not in SYLLABLES:
                continue
            found = [*before, run[start:end]]
            now = best[end]
            if now is None or _rank(found) < _rank(now):
                best[end] = found
    covered = max(end for end, found in enumerate(best) if found is not None)
    return best[covered] or [], run[covered:]


def _rank(syllables: list[str]) -> tuple[int, list[int]]:
    return len(syllables), [-len(syllable) for syllable in syllables]
