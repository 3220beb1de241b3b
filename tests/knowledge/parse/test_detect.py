from __future__ import annotations

from pathlib import PurePath

import pytest

from dari.knowledge.chunk import current_chunkers
from dari.knowledge.parse import media_of, parser_version
from dari.knowledge.parse.language import detect_language

# One sentence, said in each language.
SENTENCES = {
    "de": "Die Sicherung läuft jede Nacht um zwei Uhr. Wenn der Server nicht antwortet, wird eine Meldung an "
    "den Dienst geschickt.",
    "fr": "La sauvegarde est faite chaque nuit à deux heures. Si le serveur ne répond pas, un message est "
    "envoyé à l'équipe.",
    "es": "La copia de seguridad se hace todas las noches a las dos. Si el servidor no responde, se envía un "
    "mensaje al equipo.",
    "it": "Il backup viene eseguito ogni notte alle due. Se il server non risponde, un messaggio viene inviato "
    "alla squadra.",
    "pt": "A cópia de segurança é feita todas as noites às duas horas. Se o servidor não responder, uma "
    "mensagem é enviada à equipa.",
    "nl": "De back-up wordt elke nacht om twee uur gemaakt. Als de server niet antwoordt, krijgt het team een bericht.",
    "sv": "Säkerhetskopian görs varje natt klockan två. Om servern inte svarar skickas ett meddelande till "
    "gruppen som har jour.",
    "da": "Sikkerhedskopien laves hver nat klokken to. Hvis serveren ikke svarer, sendes der en besked til "
    "gruppen, og den bliver set af alle.",
    "no": "Sikkerhetskopien lages hver natt klokken to. Hvis serveren ikke svarer, blir det sendt en melding "
    "til gruppen for å varsle om feilen.",
    "fi": "Varmuuskopio tehdään joka yö kello kaksi. Jos palvelin ei vastaa, viesti lähetetään ryhmälle, joka "
    "on päivystysvuorossa ja voi korjata sen.",
    "pl": "Kopia zapasowa jest wykonywana każdej nocy o drugiej. Jeśli serwer nie odpowiada, to wiadomość jest "
    "wysyłana do zespołu.",
    "cs": "Záloha se provádí každou noc ve dvě hodiny. Pokud server neodpovídá, zpráva je odeslána skupině, "
    "která má službu a může to opravit.",
    "hu": "A mentés minden éjjel két órakor készül. Ha a szerver nem válaszol, az ügyeletes csapat üzenetet "
    "kap, hogy javítsa meg.",
    "ro": "Copia de siguranță se face în fiecare noapte la ora două. Dacă serverul nu răspunde, un mesaj este "
    "trimis la echipa care este de serviciu.",
    "tr": "Yedekleme her gece saat ikide yapılır. Sunucu yanıt vermezse, ekip için bir mesaj gönderilir ve bu "
    "kayıt daha sonra incelenir.",
    "vi": "Bản sao lưu được tạo mỗi đêm lúc hai giờ. Nếu máy chủ không trả lời, một tin nhắn sẽ được gửi cho "
    "nhóm trực.",
    "id": "Cadangan dibuat setiap malam pada pukul dua. Jika server tidak menjawab, pesan akan dikirim ke tim "
    "yang bertugas.",
    "ru": "Резервная копия делается каждую ночь в два часа. Если сервер не отвечает, то сообщение отправляется "
    "в группу.",
    "uk": "Резервна копія робиться щоночі о другій годині. Якщо сервер не відповідає, то повідомлення "
    "надсилається до групи, і це є в журналі.",
    "bg": "Резервното копие се прави всяка нощ в два часа. Ако сървърът не отговаря, съобщението се изпраща на "
    "групата и това е всичко.",
    "el": "Το αντίγραφο ασφαλείας γίνεται κάθε νύχτα στις δύο.",
    "ar": "يتم إجراء النسخ الاحتياطي كل ليلة في الساعة الثانية.",
    "he": "הגיבוי מתבצע בכל לילה בשעה שתיים.",
    "th": "การสำรองข้อมูลทำทุกคืนเวลาสองนาฬิกา",
    "hi": "बैकअप हर रात दो बजे लिया जाता है।",
    "en": "The backup is made every night at two. If the server does not answer, a message is sent to the team "
    "on call.",
}


@pytest.mark.parametrize(
    ("name", "head", "media"),
    [
        ("a.MD", b"# x", "markdown"),
        ("notes.txt", b"x", "text"),
        ("LICENSE", b"x", "text"),
        ("a.docx", b"PK\x03\x04", "office"),
        ("page.htm", b"<p>", "html"),
        ("a.ipynb", b"{}", "notebook"),
        ("scan.JPG", b"\xff\xd8\xff", "image"),
        ("Dockerfile.dev", b"FROM x", "code"),
        ("go.mod", b"module x", "code"),
        ("tool", b"#!/usr/bin/env python3\nx", "code"),
        ("tool", b"#!/bin/sh\nx", "code"),
        ("tool", b"plain", None),
        ("paper.txt", b"%PDF-1.7", "pdf"),
        ("a.md", b"\x89PNG\r\n\x1a\n", None),
        ("a.md", b"PK\x03\x04", None),
        ("package-lock.json", b"{}", None),
        ("a.exe", b"MZ", None),
        ("a.hwp", b"\xd0\xcf", None),
        (".gitignore", b"x", None),
    ],
)
def test_a_file_goes_to_the_parser_of_its_name_and_first_bytes(name: str, head: bytes, media: str | None) -> None:
    assert media_of(PurePath(name), head) == media


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("연차는 15일이다.", "ko"),
        ("`kubectl apply -f deployment.yaml` 명령으로 배포한다. The rest is in English words here and there.", "ko"),
        ("The index is rebuilt when the store is newer than it.", "en"),
        ("これは日本語の文です。", "ja"),
        ("这是一个中文句子。", "zh"),
        ("x = foo(bar, baz); y++", "und"),
        ("Der Index wird neu gebaut, wenn der Speicher neuer ist.", "de"),
        ("for i in range(a): w = z.do(i, o)", "und"),
        ("", "und"),
        ("12345 67", "und"),
    ],
)
def test_the_language_is_read_off_the_script_and_the_words(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize("language", SENTENCES)
def test_a_language_is_known_by_its_function_words_or_its_script(language: str) -> None:
    assert detect_language(SENTENCES[language]) == language


def test_every_kind_has_a_parser_label_and_labels_of_chunkers_are_listed() -> None:
    assert parser_version("markdown") == "md-blocks-v1"
    assert {"md-heading-v2", "pdf-page-v1.2", "code-python-ast-v1", "k8s-manifest-resource-v1"} <= current_chunkers()
