"""The sizes of chunks, the estimate of tokens they are measured by, and the labels of the rules that cut them."""

from __future__ import annotations

from msgspec import Struct

from dari.errors import InvalidInput
from dari.knowledge.document import ParsedDocument
from dari.knowledge.ids import policy_hash

BYTES_PER_TOKEN = 3
MAX_TARGET_TOKENS = 100_000

_BY_MEDIA = {
    "markdown": "md-heading-v2",
    "text": "text-paragraph-v1",
    "pdf": "pdf-page-v1.2",
    "html": "html-heading-v1",
    "office": "office-section-v1",
    "notebook": "ipynb-cell-v1",
    "image": "ocr-page-v1",
}
AST_LANGUAGES = frozenset(
    ("python", "javascript", "typescript", "tsx", "go", "rust", "java", "kotlin", "c", "cpp", "bash")
)
_BY_CODE = {
    "k8s": "k8s-manifest-resource-v1",
    "dockerfile": "dockerfile-file-v1",
    "manifest": "manifest-file-v1",
    "paragraphs": "code-text-paragraph-v1",
}


class ChunkPolicy(Struct, frozen=True):
    target_tokens: int = 500
    overlap_tokens: int = 80
    max_tokens: int = 4_000
    """A single block that is longer is cut, on lines and then inside them."""

    def __post_init__(self) -> None:
        if not 1 <= self.target_tokens <= MAX_TARGET_TOKENS:
            raise InvalidInput(f"target_tokens must be between 1 and {MAX_TARGET_TOKENS}, got {self.target_tokens}")
        if not 0 <= self.overlap_tokens <= self.target_tokens // 2:
            raise InvalidInput(
                f"overlap_tokens must be between 0 and half of target_tokens ({self.target_tokens // 2}), "
                f"got {self.overlap_tokens}"
            )
        if self.max_tokens < self.target_tokens:
            raise InvalidInput(
                f"max_tokens must be at least target_tokens ({self.target_tokens}), got {self.max_tokens}"
            )

    @property
    def hash(self) -> str:
        return policy_hash(self.target_tokens, self.overlap_tokens, self.max_tokens)


def token_count(text: str) -> int:
    """A third of its UTF-8 bytes: about right for English and for Korean, and the same on every machine."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def chunker_version(document: ParsedDocument) -> str:
    """The label of the rules that cut this document."""
    if document.media != "code":
        return _BY_MEDIA[document.media]
    if any(block.kind == "unit" for block in document.blocks):
        return f"code-{document.code_lang}-ast-v1" if document.code_lang in AST_LANGUAGES else _whole_file(document)
    return _BY_CODE["paragraphs"]


def current_chunkers() -> frozenset[str]:
    """Every label in use now. A stored document with another one was cut by older rules."""
    return frozenset((*_BY_MEDIA.values(), *_BY_CODE.values(), *(f"code-{one}-ast-v1" for one in AST_LANGUAGES)))


def _whole_file(document: ParsedDocument) -> str:
    kind = "k8s" if document.code_lang == "yaml" else document.code_lang
    return _BY_CODE.get(kind, _BY_CODE["manifest"])
