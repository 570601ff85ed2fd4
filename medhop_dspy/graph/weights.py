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
RECORD: Final = "config.json"
RELATIONS: Final = "relations.safetensors"
PUBLISHED_EMBEDDER: Final = "sentence-transformers/all-mpnet-base-v2"
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
    """Write the weights and what is known of them; a crash leaves the old files or the new ones.

    Raises:
        DiskFullError: no space is left.
        StoreError: the folder cannot be written.
    """
    from safetensors.torch import save as to_bytes

    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    known = {**record, "weights": weights_digest(model)}
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / WEIGHTS, lambda stream: stream.write(to_bytes(tensors)))
        write_atomically(folder / RECORD, lambda stream: stream.write(json.dumps(known, indent=1).encode()))


def load(folder: Path) -> tuple[GFM, dict[str, Any]]:
    """The weights in ``folder``, of ours or of the published layout (``model.pth``), and the record beside them.

    The sizes are those of the weights.

    Raises:
        ArtefactError: the weights are missing, damaged, or not those of this architecture.
    """
    state = _read_weights(folder)
    try:
        hidden, features = state["question_mlp.weight"].shape
        layers = len({name.split(".")[2] for name in state if name.startswith("entity_model.layers.")})
        model = GFM(features, hidden, layers)
        model.load_state_dict(state, strict=True)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise ArtefactError(
            f"the weights in {folder} are not those of a graph model: {_line(error)}", hint=_TRAIN
        ) from error
    record = _read_record(folder)
    if record.get("weights", weights_digest(model)) != weights_digest(model):
        raise ArtefactError(
            f"the weights in {folder} are not those that {RECORD} beside them describes",
            hint="Its training was interrupted while writing; run `medhop graph train` again.",
        )
    return model.eval(), record


def fitting_embedder(record: dict[str, Any], embedder: Encoder, home: Path) -> Encoder:
    """``embedder`` if the weights were trained on its vectors, else the model that their record names.

    Args:
        record: Of :func:`load`; that of published weights names no embedder, which is all-mpnet-base-v2.
        embedder: The model in use.
        home: The folder that holds ``models``.

    Raises:
        ArtefactError: that model is not there, or is another one of the same name.
    """
    wanted = record.get("embedder") or {"name": PUBLISHED_EMBEDDER}
    if embedder.name == wanted["name"] and "digest" not in wanted:
        return embedder
    if (embedder.digest, embedder.revision) == (wanted.get("digest"), wanted.get("revision")):
        return embedder
    found = Embedder(wanted["name"], home=home)
    if "digest" in wanted and (found.digest, found.revision) != (wanted["digest"], wanted["revision"]):
        raise ArtefactError(
            f"the graph model was trained on {wanted['name']} with weights {wanted['digest'][:12]}, "
            f"the model of that name here has {found.digest[:12]}",
            hint=_TRAIN,
        )
    return found


def _read_weights(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    ours, published = folder / WEIGHTS, folder / PUBLISHED_WEIGHTS
    if not ours.is_file() and not published.is_file():
        raise ArtefactError(f"there are no weights of a graph model in {folder}", hint=_TRAIN)
    try:
        if ours.is_file():
            return dict(load_file(ours))
        state = torch.load(published, map_location="cpu", weights_only=True)
        return dict(state.get("model", state))
    except (
        SafetensorError,
        pickle.UnpicklingError,
        OSError,
        RuntimeError,
        ValueError,
        AttributeError,
        EOFError,
    ) as error:
        raise ArtefactError(f"the weights in {folder} cannot be read: {_line(error)}", hint=_TRAIN) from error


def _read_record(folder: Path) -> dict[str, Any]:
    try:
        record = json.loads((folder / RECORD).read_bytes())
        return record if isinstance(record, dict) else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ArtefactError(f"{folder / RECORD} cannot be read: {error}", hint=_TRAIN) from error


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
