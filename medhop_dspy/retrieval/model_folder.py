"""Where an embedding model is, whether all of it is there, and what identifies it.

A model is a folder as sentence-transformers saves it. It is checked before it is loaded, because a loader
that meets an incomplete folder guesses a pooling, or fails with an error that names neither file nor folder.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final

from medhop_dspy.errors import ArtefactError

_HUB_ID: Final = re.compile(r"[\w.-]+/[\w.-]+")
_WEIGHTS: Final = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
_TOKENIZERS: Final = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
# Files of each kind of module; one of the alternatives in a tuple must be there.
_NEEDS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "Transformer": (("config.json",), _WEIGHTS, _TOKENIZERS),
    "Pooling": (("config.json",),),
    "Dense": (("config.json",), _WEIGHTS),
    "Router": (("router_config.json",),),
}
# What decides how a text becomes a vector, besides the weights: prompts, lengths, pooling, tokens.
_CONFIGURATION: Final = frozenset(
    {
        "modules.json",
        "config.json",
        "router_config.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        *_TOKENIZERS,
    }
)


def locate_model(name: str, home: Path) -> Path:
    """The complete folder of model ``name``; the network is not used.

    Args:
        name: A path (absolute, or beginning with ``.`` or ``~``), the name of a folder in ``home/models``, or the
            id of a hub model that the hub's local cache holds.
        home: The folder that holds ``models``.

    Raises:
        ArtefactError: if there is no such folder, or a file in it is missing, empty or cut off.
    """
    path = Path(name).expanduser()
    if not path.is_absolute() and not name.startswith("."):
        path = home / "models" / name
        if not path.is_dir() and _HUB_ID.fullmatch(name):
            path = _cached_hub_model(name) or path
    if not path.is_dir():
        raise ArtefactError(f"no embedding model {name!r}: there is no folder {path}", hint=_how_to_fetch(name, home))
    check_model_folder(path, hint=_how_to_fetch(name, home))
    return path


def check_model_folder(folder: Path, *, hint: str = "") -> None:
    """Refuse a model folder in which a file is missing, empty or cut off.

    Raises:
        ArtefactError: naming file and folder.
    """
    modules = _read_json(_present(folder, ("modules.json",), hint), folder, hint)
    if not isinstance(modules, list) or not all(isinstance(m, dict) and "type" in m for m in modules):
        raise ArtefactError(f"modules.json in model folder {folder} is no list of modules", hint=hint)
    for module in modules:
        place = folder / module.get("path", "")
        for names in _NEEDS.get(str(module["type"]).rsplit(".", 1)[-1], ()):
            file = _present(place, names, hint)
            if file.name.endswith(".index.json"):
                index = _read_json(file, folder, hint)
                for shard in sorted(set(index.get("weight_map", {}).values())):
                    _present(place, (shard,), hint)
    for file in _weight_files(folder, hint):
        if file.suffix == ".safetensors":
            _check_length(file, hint)


def weights_digest(folder: Path) -> str:
    """Hex SHA-256 of the weight file; of the list of their digests, where there are several."""
    digests = [_sha256(file) for file in _weight_files(folder, "")]
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def configuration_digest(folder: Path) -> str:
    """Hex SHA-256 of all small files that decide how a text becomes a vector: prompts, pooling, tokenizer, lengths."""
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.rglob("*") if file.name in _CONFIGURATION):
        digest.update(f"{file.relative_to(folder).as_posix()} {_sha256(file)}\n".encode())
    return digest.hexdigest()


def _cached_hub_model(name: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _how_to_fetch(name: str, home: Path) -> str:
    if _HUB_ID.fullmatch(name):
        return f"Download it with `hf download {name} --local-dir {home / 'models' / name}`."
    return f"Fetch it with `medhop models fetch {Path(name).name}`, or give the folder of a complete model."


def _present(folder: Path, names: tuple[str, ...], hint: str) -> Path:
    """The first of ``names`` in ``folder``, if it holds anything."""
    file = next((folder / name for name in names if (folder / name).is_file()), None)
    if file is None:
        raise ArtefactError(f"file {' or '.join(names)} is missing in model folder {folder}", hint=hint)
    if not file.stat().st_size:
        raise ArtefactError(f"file {file.name} in model folder {folder} is empty", hint=hint)
    return file


def _read_json(file: Path, folder: Path, hint: str) -> Any:  # noqa: ANN401
    try:
        return json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"file {file.name} in model folder {folder} is not JSON: {error}", hint=hint) from error


def _weight_files(folder: Path, hint: str) -> list[Path]:
    """Weights that PyTorch reads; exports to other runtimes lie in sub-folders of these names."""
    found = [f for f in folder.rglob("*.safetensors") if not {"onnx", "openvino"} & set(f.relative_to(folder).parts)]
    found = found or list(folder.rglob("pytorch_model*.bin"))
    if not found:
        raise ArtefactError(f"file {' or '.join(_WEIGHTS)} is missing in model folder {folder}", hint=hint)
    return sorted(found)


def _check_length(file: Path, hint: str) -> None:
    """Compare a safetensors file's length with what its header announces: a cut download is shorter."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        header_size = int.from_bytes(stream.read(8), "little")
        header = stream.read(header_size) if header_size < size else b""
    try:
        tensors = json.loads(header)
        wanted = 8 + header_size + max(t["data_offsets"][1] for n, t in tensors.items() if n != "__metadata__")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        wanted = -1
    if size != wanted:
        seen = f"{size:,} bytes, wanted {wanted:,}" if wanted > 0 else f"{size:,} bytes without a readable header"
        raise ArtefactError(f"file {file.name} in model folder {file.parent} is damaged: {seen}", hint=hint)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
