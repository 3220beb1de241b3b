"""Korean words: particles (josa) taken off the end of an eojeol, by the sound of the syllable before them.

Heuristic, without a dictionary: what it strips wrongly is stripped wrongly in documents and questions alike, and the
bigrams beside the stem still match.
"""

from __future__ import annotations

import re

_FIRST_SYLLABLE = 0xAC00
_FINALS = 28  # finals of a syllable, "none" included

# Which syllable a particle may follow: with a final consonant, without one, or any.
_AFTER_FINAL = "은 을 이 과 으로 이나 이란 이랑 이라 이라는 이라고 이든 이든지"
_AFTER_VOWEL = "는 를 가 와 로 나 란 랑 라 며 고 라는 라고 든지"
_AFTER_ANY = """
의 에 도 만 에서 에게 에는 에도 에만 에서는 에서도 에서의 에게는 에게서 한테 께서 께 까지 까지의 까지는 부터
부터의 보다 보다는 처럼 만큼 마다 밖에 조차 마저 뿐 뿐만 으로서 으로써 로서 로써 으로는 로는 으로의 로의
으로도 로도 으로부터 로부터 와의 과의 와는 과는 와도 과도 에의 에서부터 들 들은 들을 들이 들의 들에게 들과
들도 이다 입니다 인가 인가요 일까 일까요 이었다 였다 이며 이고 인지 인 이지만 하다 한다 하는 하여 하고 하면
하기 하며 했다 했던 하던 합니다 하나요 할까 할까요 해야 해서 하려면 하지 하였다 했나요 했는가 하는가 하도록 한
할 함 되다 된다 되는 되어 되고 되면 되며 됐다 되었다 되던 됩니다 되나요 된 될 됨
"""
_SUFFIXES: dict[str, int] = {
    **dict.fromkeys(_AFTER_ANY.split(), 0),
    **dict.fromkeys(_AFTER_FINAL.split(), 1),
    **dict.fromkeys(_AFTER_VOWEL.split(), 2),
}
# By the last syllable: most words end in none of them, and are done.
_LENGTHS: dict[str, tuple[int, ...]] = {
    last: tuple(sorted({len(one) for one in _SUFFIXES if one[-1] == last}, reverse=True))
    for last in {one[-1] for one in _SUFFIXES}
}
# A stem of one syllable is believed only before these: 법은, 물을, 집에. Of the others too many end a noun: 회의, 휴가.
_AFTER_ONE_SYLLABLE = frozenset(
    ("은", "는", "을", "를", "에", "에서", "에는", "에서는", "으로", "까지", "부터", "이란")
)
# These end many nouns.
_DOUBTFUL = frozenset("의이가과와로도만나라며고란랑인한할함된될됨들께뿐")
# Nouns of two syllables or more that end like a particle.
_NOUN_ENDING_WORDS = """
주의 회의 정의 강의 동의 합의 논의 협의 심의 결의 건의 문의 이의 평가 국가 결과 효과 학과
성과 경고 보고 광고 창고 사고 참고 제도 정도 속도 온도 각도 시도 유도 용도 제한 권한 기한
무한 개인 확인 승인 원인 법인 본인 주인
"""
_NOUN_ENDINGS = frozenset(_NOUN_ENDING_WORDS.split())
_STOP_WORDS = """
무엇 무엇인가 무엇인가요 무엇이 무슨 뭐 뭔가 뭘 어떤 어떻게 어느 어디 어디에 어디에서 언제 누가 누구 누구의 왜
얼마 얼마나 몇 것 것은 것이 것을 수 때 때문 등 및 또는 그리고 그러나 하지만 그 이 저 있는 있다 있나 있나요
있는가 있는지 있을까 있습니다 없는 없다 하는 하나 하나요 하는가 하는지 한 할 해 했나 했나요 합니까 합니다 한다
했다 된 되는 되나요 된다 됩니까 인가 인가요 인지 일까 은 는 을 를 가 의 에 와 과 도 로 으로 에서 에게 대해
대해서 대한 위해 위한 통해 통한 따라 따른 관한 관해 알려줘 알려주세요 설명해줘 설명해주세요 주세요 해줘 뭐야
뭔가요 이란 란 좀 더 가장 어떠한 이런 그런 저런 같은 무얼 뭔지 어때요 어떤가요 어떤지 어떻습니까 있습니까 있을까요
있는지요 없나 없나요 없는지 없습니까 없을까요 하는지요 했습니까 했는지 되는가 되는지 될까 될까요 됐나요
되었나요 되었습니까 인지요 입니까 입니다 이다 싶어요 싶습니다 싶은데 싶은데요 궁금해요 궁금합니다 궁금한데
말해줘 말해주세요 찾아줘 찾아주세요 보여줘 알려주십시오 알려줄래
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words of questions that say nothing of the subject: left out of a query, never of the index."""
# 며칠인가요, 언제부터였습니까, 몇시까지: a question word with whatever stands behind it; 개인가요 and 번입니까, the end
# of "몇 개인가요", would else be looked for as 개인, "a person". At most four endings: without a bound a long word that
# almost matches is tried in 2ⁿ ways.
_COUNTED = (
    "시간?|명|개월?|번째?|년|월|일|살|장|회|가지|분|초|주|달|도|층|권|대|건|곳|차례|군데|마리|원|퍼센트|프로|배|세"
)
_ASKED = "인가요?|입니까|일까요?|인지요?|이에요|예요|이죠|죠|이나"
_BEHIND = (
    f"{_ASKED}|은|는|이|가|을|를|의|에|엔|서|에서|에게|한테|로|으로|와|과|랑|까지|부터|만에|만|동안|쯤|정도|마다|씩|나|도|든|든지"
    "|이었|였|이었던|였던|습니까|지|이지|야|이야|니|이니|나요|는가|는지|까|요|되|됩니까|된|될|하|합니까|한|할|해|해야|했"
)
_QUESTION_WORD = re.compile(
    rf"(?:무엇|뭐|어디|언제|누구|얼마|며칠|왜|어떻게|어떠|몇(?:{_COUNTED})?)(?:{_BEHIND}){{0,4}}|(?:{_COUNTED})(?:{_ASKED})"
)


def strip_particle(word: str) -> str:
    """The stem of one eojeol in Hangul: `학교에서` gives `학교`, `마을` stays, since 을 follows a final consonant."""
    size = len(word)
    lengths = _LENGTHS.get(word[-1])
    if lengths is None or size < 2 or word[-2:] in _NOUN_ENDINGS:
        return word
    for length in lengths:
        left = size - length
        if left < 1:
            continue
        suffix = word[left:]
        kind = _SUFFIXES.get(suffix)
        if kind is None or (left == 1 and suffix not in _AFTER_ONE_SYLLABLE):
            continue
        if kind:
            before = word[left - 1]
            if has_final(before) != (kind == 1) and not (suffix == "로" and _ends_in_rieul(before)):
                continue
        return word[:left]
    return word


def is_stop_word(word: str) -> bool:
    """Is the eojeol a question word in any of its forms, or another word that says nothing of a question's subject?"""
    return strip_particle(word) in STOP_WORDS or word in STOP_WORDS or _QUESTION_WORD.fullmatch(word) is not None


def trusted_stem(word: str, stem: str) -> str:
    """What bigrams are made of: the stem where the particle cannot be the end of a noun, else the whole word."""
    return stem if len(stem) >= 2 and word[len(stem) :] not in _DOUBTFUL else word


def has_final(syllable: str) -> bool:
    """Does the syllable end in a consonant?"""
    code = ord(syllable) - _FIRST_SYLLABLE
    return 0 <= code < 11172 and code % _FINALS != 0


def _ends_in_rieul(syllable: str) -> bool:
    return (ord(syllable) - _FIRST_SYLLABLE) % _FINALS == 8  # 서울로: 로 follows ㄹ too
