"""Files of a graph model: its weights, what is known of them, and the vectors of a graph's relations.

Importing this module loads PyTorch, so import it where a model is used.
"""

from __future__ import annotations

import hashlib
import json
import logging
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from medhop_dspy.errors import ArtefactError, DiskFullError, StoreError
from medhop_dspy.graph.gfm import GFM
from medhop_dspy.retrieval.disk import disk_errors, write_atomically
from medhop_dspy.retrieval.embedding import Embedder

if TYPE_CHECKING:
    from torch import Tensor

    from medhop_dspy.retrieval.embedding import Encoder

WEIGHTS: Final = "model.safetensors"
PUBLISHED_WEIGHTS: Final = "model.pth"
CONFIG: Final = "config.json"
RELATIONS: Final = "relations.safetensors"
PUBLISHED_EMBEDDER: Final = "sentence-transformers/all-mpnet-base-v2"
_RECORD: Final = "record"  # key of the weights' metadata
_TRAIN: Final = "Train a model with `medhop graph train`, or give the folder of published weights as gfm_model."
_log = logging.getLogger(__name__)


def relation_features(relations: Sequence[str], embedder: Encoder, cache: Path | None = None) -> Tensor:
    """(2 R, features) unit vectors of the relations' texts, then of the same with ``inverse`` before them.

    Args:
        relations: Texts.
        embedder: Gives the vectors.
        cache: A folder to keep them in: there may be thousands of texts, and one waits for them at every start.
    """
    texts = [*relations, *(f"inverse {text}" for text in relations)]
    key = hashlib.sha256(json.dumps([texts, embedder.digest, embedder.revision]).encode()).hexdigest()
    vectors = _kept(cache, key)
    if vectors is None:
        vectors = torch.from_numpy(np.array(embedder.embed(texts), np.float32).reshape(-1, embedder.dimension))
        _keep(cache, key, vectors)
    return vectors


def weights_digest(model: GFM) -> str:
    """Hex SHA-256 of names and values of the weights, whatever file they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def save(model: GFM, folder: Path, record: dict[str, Any]) -> None:
    """Write the weights and what is known of them, in one file: a crash leaves the old state or the new one.

    ``config.json`` beside it says the same to people and is not read again.

    Raises:
        DiskFullError: no space is left.
        StoreError: the folder cannot be written.
    """
    from safetensors.torch import save as to_bytes

    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    known = {**record, "weights": weights_digest(model)}
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        data = to_bytes(tensors, {_RECORD: json.dumps(known)})
        write_atomically(folder / WEIGHTS, lambda stream: stream.write(data))
        write_atomically(folder / CONFIG, lambda stream: stream.write(json.dumps(known, indent=1).encode()))


def saved_in(folder: Path) -> bool:
    """Whether :func:`save` wrote the weights in ``folder``, as far as their file, which may be damaged, can tell."""
    from safetensors import SafetensorError, safe_open

    if not (folder / WEIGHTS).is_file():
        return False
    try:
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            return _RECORD in (file.metadata() or {})
    except (SafetensorError, OSError):
        return True


def load(folder: Path) -> tuple[GFM, dict[str, Any]]:
    """The weights in ``folder``, of ours or of the published layout (``model.pth``), and their record.

    The sizes are those of the weights; the record of published ones is empty.

    Raises:
        ArtefactError: the weights are missing, damaged, or not those of this architecture.
    """
    state, record = _read(folder)
    try:
        hidden, features = state["question_mlp.weight"].shape
        layers = len({name.split(".")[2] for name in state if name.startswith("entity_model.layers.")})
        model = GFM(features, hidden, layers)
        model.load_state_dict(state, strict=True)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise ArtefactError(
            f"the weights in {folder} are not those of a graph model: {_line(error)}", hint=_TRAIN
        ) from error
    return model.eval(), record


def fitting_embedder(record: dict[str, Any], embedder: Encoder, home: Path) -> Encoder:
    """``embedder`` if the weights were trained on its vectors, else the model that their record names.

    Args:
        record: Of :func:`load`; that of published weights names no embedder, which is all-mpnet-base-v2.
        embedder: The model in use.
        home: The folder that holds ``models``.

    Raises:
        ArtefactError: that model is not there, or is another one of the same name; or the record names none.
    """
    wanted = record.get("embedder", {"name": PUBLISHED_EMBEDDER})
    texts = [wanted.get("name"), wanted.get("digest", "")] if isinstance(wanted, dict) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise ArtefactError("the record of the graph model does not say which embedding model it reads", hint=_TRAIN)
    if embedder.name == wanted["name"] and "digest" not in wanted:
        return embedder
    if (embedder.digest, embedder.revision) == (wanted.get("digest"), wanted.get("revision")):
        return embedder
    found = Embedder(wanted["name"], home=home)
    if "digest" in wanted and (found.digest, found.revision) != (wanted["digest"], wanted.get("revision")):
        raise ArtefactError(
            f"the graph model was trained on {wanted['name']} with weights {wanted['digest'][:12]}, "
            f"the model of that name here has {found.digest[:12]}",
            hint=_TRAIN,
        )
    return found


def _read(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors by name, and what their file says of them."""
    from safetensors import SafetensorError, safe_open

    ours, published = folder / WEIGHTS, folder / PUBLISHED_WEIGHTS
    if not ours.is_file() and not published.is_file():
        raise ArtefactError(f"there are no weights of a graph model in {folder}", hint=_TRAIN)
    try:
        if ours.is_file():
            with safe_open(ours, framework="pt") as file:
                record = json.loads((file.metadata() or {}).get(_RECORD, "{}"))
                return {name: file.get_tensor(name) for name in file.keys()}, dict(record)  # noqa: SIM118
        state = torch.load(published, map_location="cpu", weights_only=True)
        return dict(state.get("model", state)), {}
    except (
        SafetensorError,
        pickle.UnpicklingError,
        OSError,
        RuntimeError,
        ValueError,
        TypeError,
        AttributeError,
        EOFError,
        RecursionError,
    ) as error:
        raise ArtefactError(f"the weights in {folder} cannot be read: {_line(error)}", hint=_TRAIN) from error


def _kept(folder: Path | None, key: str) -> Tensor | None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if folder is None or not (folder / RELATIONS).is_file():
        return None
    try:
        return load_file(folder / RELATIONS).get(key)
    except (SafetensorError, OSError) as error:
        _log.debug("%s cannot be read: %s", folder / RELATIONS, error)
        return None


def _keep(folder: Path | None, key: str, vectors: Tensor) -> None:
    from safetensors.torch import save as to_bytes

    if folder is None:
        return
    try:
        with disk_errors(folder):
            write_atomically(folder / RELATIONS, lambda stream: stream.write(to_bytes({key: vectors})))
    except (
        StoreError,
        DiskFullError,
    ) as error:  # such as a folder that may only be read; the vectors are made again next time
        _log.debug("the vectors of the relations are not kept: %s", error)


def _line(error: Exception) -> str:
    """PyTorch's messages without their line breaks, tabs and empty end."""
    return " ".join(str(error).split())
