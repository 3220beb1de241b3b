"""Labels of what parsers make. A change in what a parser makes of a file is a new label: such files are read anew."""

from __future__ import annotations

from dari.knowledge.document import Media

PARSER_VERSIONS: dict[Media, str] = {
    "markdown": "md-blocks-v1",
    "text": "text-paragraphs-v1",
    "pdf": "pdf-text-v1",
    "html": "html-article-v1",
    "office": "office-v1",
    "code": "code-units-v1",
    "notebook": "ipynb-cells-v1",
    "image": "ocr-tesseract-v1",
}


def parser_version(media: Media) -> str:
    """The label that a document of this kind gets, known before it is parsed."""
    return PARSER_VERSIONS[media]
