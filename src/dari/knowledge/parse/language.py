"""The language of a text by its scripts, and of a Latin or Cyrillic one by its function words. `und` where that is not
sure.

A classifier such as py3langid knows more languages; it needs numpy and 30 ms to start in each parser child, and a
filter needs no more than the languages below.
"""

from __future__ import annotations

import re
from collections import Counter

_SAMPLE_CHARS = 3_000
_HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]+")
_KANA = re.compile(r"[\u3041-\u30ff\u31f0-\u31ff]+")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]+")
# One script, one language that most texts in it are written in.
_SCRIPTS = {
    "el": re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]+"),
    "he": re.compile(r"[\u0590-\u05ff]+"),
    "ar": re.compile(r"[\u0600-\u06ff\u0750-\u077f]+"),
    "hi": re.compile(r"[\u0900-\u097f]+"),
    "th": re.compile(r"[\u0e00-\u0e7f]+"),
}
_FUNCTION_WORDS = {
    "en": "the of and to in is a that it for on with as are be this by an not or from at can you which will if was has "
    "have when its one all your may use we i they but how what",
    "de": "der die das und ist in den von zu mit sich des auf für nicht ein eine im dem es an werden aus er hat dass "
    "sie nach wird bei einer um am sind noch wie einem über einen so zum auch als oder wenn kann nur ich wir durch",
    "fr": "de la le et les des en un une du est que dans qui par pour au sur pas plus ne se ce il sont avec son ou aux "
    "cette comme nous vous être ont mais leur sa elle je si tout ces à été",
    "es": "de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí porque "
    "esta entre cuando muy sin sobre también me hasta hay donde es son está ser puede",
    "it": "di e il la che in un per è una sono con non del da le si dei al come i lo più gli alla delle ma anche nel "
    "della dal ha questo o se ci essere sul suo nella viene degli hanno questa",
    "pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu "
    "sua ou ser quando muito há nos já está eu também só pelo pela são",
    "nl": "de van het een en in is dat op te zijn met voor niet aan er om ook als bij of door naar worden wordt over "
    "uit maar deze die dan kan nog wel heeft tot hij ze meer geen je moet",
    "sv": "och i att det som en på är av för med den till inte ett har om de var vi kan eller från så men jag han när "
    "vid också ska blir detta efter denna under hur alla",
    "da": "og i at det er en til på som af for med de den ikke der et har om kan var fra vi men ved eller jeg så skal "
    "også efter bliver når denne dette hvor hvis alle",
    "no": "og i det er en til på som av for med de den ikke at et har om kan var fra vi men ved eller jeg så skal også "
    "etter blir når denne dette hvor hvis alle ble være å",
    "fi": "ja on ei se että en hän oli joka ovat mutta kun niin tai myös kuin ole jos mukaan sekä voi jotka ne tämä "
    "kanssa vain nyt mitä sen hänen tämän sitä joita",
    "pl": "i w na z się nie do to że jest o a jak po co tak za od są przez oraz dla jego jej czy już może tylko być "
    "tym lub ale był które który jako",
    "cs": "a se v na je že s z do o i k to jako za by ve pro ale jsou po si tak byl být nebo podle jeho které který "
    "jen při také než až od však může",
    "hu": "a az és hogy nem is egy van ez de meg csak mint ha már volt vagy el még kell lehet azt minden után ki "
    "szerint sem majd pedig akkor között",
    "ro": "și de în a la cu nu o că pe din se un mai este pentru care sunt ca ce au fi prin dar sau al ale lor fost "
    "această dacă când după",
    "tr": "ve bir bu için ile de da çok olarak daha olan gibi kadar sonra ne ki en var değil her mi ama veya ya ise "
    "göre olduğu olan nasıl kendi",
    "vi": "và của là các có cho được trong một không người với những đã này khi từ để về cũng đến như ra ở sẽ phải "
    "nhiều theo nếu hoặc",
    "id": "yang dan di untuk dengan dari ini itu tidak pada dalam adalah ke akan atau oleh sebagai juga telah dapat "
    "bisa ada lebih kami saya karena jika sudah harus setiap",
}
_CYRILLIC_WORDS = {
    "ru": "и в не на что с по это как а но из за то у от для же о его к или так бы вы мы она они был быть все если",
    "uk": "і в не на що з та це як але до за від для у про його її або так ви ми вона вони був бути все якщо є й",
    "bg": "и в не на че с по това как а но от за то у до или така си са ще той тя те е се при като",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in (_FUNCTION_WORDS | _CYRILLIC_WORDS).items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_language)
_MIN_LETTERS = 4
# Technical Korean is full of Latin names and code: a tenth of Hangul is a Korean text.
_MIN_HANGUL_SHARE = 0.10
_MIN_CJK_SHARE = 0.15
_MIN_SCRIPT_SHARE = 0.30
_MIN_FUNCTION_WORD_SHARE = 0.12
_MIN_WORDS = 3
_MIN_LONG_WORDS = 2


def detect_language(text: str) -> str:
    """Its ISO 639-1 code, or `und`."""
    sample = text if len(text) <= _SAMPLE_CHARS else text[:_SAMPLE_CHARS]
    if sample.isascii():
        return _language_of_words(sample)
    hangul, kana, han = _count(_HANGUL, sample), _count(_KANA, sample), _count(_HAN, sample)
    cyrillic = _count(_CYRILLIC, sample)
    scripts = {language: _count(letters, sample) for language, letters in _SCRIPTS.items()}
    latin = _count(_LATIN, sample)
    letters = hangul + kana + han + latin + cyrillic + sum(scripts.values())
    if letters < _MIN_LETTERS and hangul + kana + han < 2:
        return "und"
    if hangul > letters * _MIN_HANGUL_SHARE and hangul >= kana:
        return "ko"
    if kana + han > letters * _MIN_CJK_SHARE:
        return "ja" if kana > (kana + han) * 0.1 else "zh"
    for language, count in scripts.items():
        if count > letters * _MIN_SCRIPT_SHARE:
            return language
    return _language_of_words(sample)


def _count(letters: re.Pattern[str], sample: str) -> int:
    return sum(map(len, letters.findall(sample)))


def _language_of_words(sample: str) -> str:
    """The language whose function words the text has most of; a word that several have counts less."""
    lowered = sample.lower()
    words = _LATIN.findall(lowered)
    if not sample.isascii():
        words += _CYRILLIC.findall(lowered)
    if len(words) < _MIN_WORDS:
        return "und"
    counts: dict[str, int] = {}
    weights: dict[str, float] = {}
    long_words: dict[str, int] = {}
    for word, times in Counter(words).items():
        languages = _LANGUAGES_OF.get(word, ())
        for language in languages:
            counts[language] = counts.get(language, 0) + times
            weights[language] = weights.get(language, 0.0) + times / len(languages)
            long_words[language] = long_words.get(language, 0) + (len(word) > 1)
    best = max(weights, key=lambda language: weights[language], default="und")
    # Code is full of `i`, `a` and `w`, which are words somewhere.
    is_prose = long_words.get(best, 0) >= _MIN_LONG_WORDS
    return best if is_prose and counts[best] > len(words) * _MIN_FUNCTION_WORD_SHARE else "und"
