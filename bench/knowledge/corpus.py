"""The made-up corpus: passages of about 1 kB, half English and half Korean, of Zipf's vocabulary, with vectors.

A passage has a topic: a third of its words come from the topic's own few hundred, the rest from the whole language, and
its vector lies near the topic's. A query has ten words of one passage. Everything follows from the seed. What reads the
files needs the standard library only; what makes them needs numpy.
"""

import json
import multiprocessing
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

DIM = 384
QUERIES = 200
_TOPICS = 1000
_VOCABULARY = 60_000
_TOPIC_WORDS = 300
_BATCH = 10_000
_ANALYSED_AT_ONCE = 200
# Words of a passage from the language and from its topic: about 1,000 bytes of UTF-8.
_ENGLISH_WORDS = (84, 40)
_KOREAN_WORDS = (52, 24)
_CONSONANTS = ("b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pl", "ch", "sh")
_VOWELS = ("a", "e", "i", "o", "u", "a", "e", "i", "o", "ea", "ou", "ai")
_ENDS = ["", "", "", "n", "r", "s", "t", "l", "ng", "tion", "ment", "ing", "ed", "ity", "al"]
# Korean text has some hundred syllables that are frequent; bigrams repeat as in real text.
_SYLLABLES = [chr(0xAC00 + code) for code in range(0, 11172, 28)][:400]
_PARTICLES = [
    "",
    "",
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "의",
    "에",
    "에서",
    "으로",
    "도",
    "까지",
    "하는",
    "했다",
    "한다",
]
_PARTICLE_WEIGHTS = [1 / (place + 1) for place in range(len(_PARTICLES))]


@dataclass(frozen=True, slots=True)
class CorpusFiles:
    folder: Path
    passages: int

    @property
    def texts(self) -> Path:
        """One passage a line."""
        return self.folder / "passages.txt"

    @property
    def terms(self) -> Path:
        """Every passage as our analyser leaves it: what the peers index, so that all compare the same terms."""
        return self.folder / "terms.txt"

    @property
    def vectors(self) -> Path:
        return self.folder / "vectors.f32"

    @property
    def queries(self) -> Path:
        """One JSON object a line: `text`, and its `terms` joined by spaces."""
        return self.folder / "queries.jsonl"

    @property
    def query_vectors(self) -> Path:
        return self.folder / "query_vectors.f32"


def make_corpus(folder: Path, passages: int, seed: int = 7) -> CorpusFiles:
    """Write the passages, the queries and both kinds of vectors."""
    from dari.knowledge.search.query import parse_query

    files = CorpusFiles(folder, passages)
    folder.mkdir()
    chosen = random.Random(seed)
    topics = [chosen.randrange(_TOPICS) for _ in range(passages)]
    asked = sorted(chosen.sample(range(passages), QUERIES))
    wanted = set(asked)
    with (
        files.texts.open("w") as texts,
        files.terms.open("w") as terms,
        files.queries.open("w") as queries,
        multiprocessing.Pool(2) as analysers,
    ):
        analysed = analysers.imap(_with_terms, _texts(topics, seed), _ANALYSED_AT_ONCE)
        for number, (text, words_of_text) in enumerate(analysed):
            texts.write(text + "\n")
            terms.write(words_of_text + "\n")
            if number in wanted:
                question = " ".join(chosen.sample(text.replace(".", "").split(), 10)) + "?"
                words = {"text": question, "terms": " ".join(parse_query(question).terms)}
                queries.write(json.dumps(words, ensure_ascii=False) + "\n")
    _write_vectors(files, topics, asked, seed)
    return files


def _with_terms(text: str) -> tuple[str, str]:
    from dari.knowledge.index.analyzer import index_terms, words_of

    return text, index_terms(words_of(text))


def passages_of(files: CorpusFiles) -> Iterator[str]:
    with files.texts.open() as lines:
        for line in lines:
            yield line.rstrip("\n")


class _Language:
    """Draws the words of many passages at once."""

    def __init__(self, words: list[str], counts: tuple[int, int], made: "np.random.Generator") -> None:
        import numpy as np

        self._words = np.array(words, dtype=object)
        self._counts, self._made = counts, made
        self._common = _shares(len(words))
        self._own = _shares(_TOPIC_WORDS)
        self._topics = made.integers(200, len(words), size=(_TOPICS, _TOPIC_WORDS))

    def draw(self, topics: list[int]) -> list[list[str]]:
        import numpy as np

        common, own = ((len(topics), count) for count in self._counts)
        places = np.searchsorted(self._common, self._made.random(common))
        of_topic = np.searchsorted(self._own, self._made.random(own))
        mixed = np.concatenate((places, np.take_along_axis(self._topics[topics], of_topic, axis=1)), axis=1)
        passages: list[list[str]] = self._words[self._made.permuted(mixed, axis=1)].tolist()
        return passages


def _shares(count: int) -> "np.ndarray":
    """Zipf and Mandelbrot: the cumulated probability of each rank."""
    import numpy as np

    weights = (np.arange(count) + 3.7) ** -1.1
    return np.cumsum(weights) / weights.sum()


def _texts(topics: list[int], seed: int) -> Iterator[str]:
    """English and Korean in turn."""
    import numpy as np

    made, chosen = np.random.default_rng(seed), random.Random(seed)
    english = _Language(_english(chosen), _ENGLISH_WORDS, made)
    korean = _Language(_korean(chosen), _KOREAN_WORDS, made)
    for first in range(0, len(topics), _BATCH):
        part = topics[first : first + _BATCH]
        drawn = zip(english.draw(part[::2]), korean.draw(part[1::2]), strict=True)
        for words, eojeols in drawn:
            yield _sentences(words, 12)
            particles = chosen.choices(_PARTICLES, _PARTICLE_WEIGHTS, k=len(eojeols))
            yield _sentences([word + end for word, end in zip(eojeols, particles, strict=True)], 9)


def _sentences(words: list[str], length: int) -> str:
    return ". ".join(" ".join(words[place : place + length]) for place in range(0, len(words), length)) + "."


def _english(made: random.Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < _VOCABULARY:
        # Frequent words are short.
        count = 1 + min(len(found) // 400, 1) + made.randrange(2)
        word = "".join(made.choice(_CONSONANTS) + made.choice(_VOWELS) for _ in range(count)) + made.choice(_ENDS)
        found[word] = None
    return list(found)


def _korean(made: random.Random) -> list[str]:
    weights = [1 / (rank + 5) for rank in range(len(_SYLLABLES))]
    found: dict[str, None] = {}
    while len(found) < _VOCABULARY:
        found["".join(made.choices(_SYLLABLES, weights, k=2 + made.randrange(3)))] = None
    return list(found)


def _write_vectors(files: CorpusFiles, topics: list[int], asked: list[int], seed: int) -> None:
    import numpy as np

    made = np.random.default_rng(seed)
    centres = made.normal(size=(_TOPICS, DIM)).astype(np.float32)
    kept, wanted = {}, set(asked)
    with files.vectors.open("wb") as out:
        for first in range(0, len(topics), _BATCH):
            part = topics[first : first + _BATCH]
            rows = centres[part] + made.normal(size=(len(part), DIM)).astype(np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            rows.tofile(out)
            kept.update(
                {number: rows[number - first] for number in wanted.intersection(range(first, first + len(part)))}
            )
    queries = np.stack([kept[number] for number in asked])
    queries += 0.5 * made.normal(size=queries.shape).astype(np.float32) / np.sqrt(DIM)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    queries.astype(np.float32).tofile(files.query_vectors)
