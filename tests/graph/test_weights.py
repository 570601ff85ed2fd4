import json
from dataclasses import asdict

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from medhop_dspy.errors import ArtefactError, StoreError
from medhop_dspy.graph import weights
from medhop_dspy.graph.gfm import GFM
from medhop_dspy.retrieval.manifest import EncoderRecord
from tests.retrieval.hashing_encoder import HashingEncoder
from tests.retrieval.tiny_encoder import make_encoder


@pytest.fixture
def model():
    return GFM(6, 4, 2)


def same(one, other):
    states = one.state_dict(), other.state_dict()
    return list(states[0]) == list(states[1]) and all(torch.equal(states[0][n], states[1][n]) for n in states[0])


def test_what_is_saved_is_loaded(model, tmp_path):
    weights.save(model, tmp_path / "new" / "gfm", {"seed": 3})
    loaded, record = weights.load(tmp_path / "new" / "gfm")
    assert same(model, loaded)
    assert not loaded.training
    assert record == {"seed": 3, "weights": weights.weights_digest(model)}
    assert (loaded.features, loaded.hidden, len(loaded.entity_model.layers)) == (6, 4, 2)
    assert sorted(f.name for f in (tmp_path / "new" / "gfm").iterdir()) == ["config.json", "model.safetensors"]


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_published_layout_is_loaded(model, tmp_path, wrapped):
    state = {"model": model.state_dict(), "epoch": 4} if wrapped else model.state_dict()
    torch.save(state, tmp_path / "model.pth")
    loaded, record = weights.load(tmp_path)
    assert same(model, loaded)
    assert record == {}


def test_the_digest_is_of_the_values(model):
    before = weights.weights_digest(model)
    assert before == weights.weights_digest(model)
    with torch.no_grad():
        model.rel_mlp.bias[0] += 1
    assert weights.weights_digest(model) != before


def damage(folder, model, kind):
    state = model.state_dict()
    match kind:
        case "missing tensor":
            del state["rel_mlp.bias"]
        case "tensor too many":
            state["entity_model.more"] = torch.zeros(1)
        case "tensor of another shape":
            state["entity_model.mlp.2.weight"] = torch.zeros(1, 3)
        case "no question_mlp":
            del state["question_mlp.weight"]
    contents = {
        "a list": [1, 2],
        "one tensor": {"model": torch.zeros(3)},
        "code": {"model": np.random.default_rng},
    }
    torch.save(contents.get(kind, state), folder / "model.pth")
    match kind:
        case "cut off":
            content = (folder / "model.pth").read_bytes()
            (folder / "model.pth").write_bytes(content[: len(content) // 2])
        case "no file of weights":
            (folder / "model.pth").write_text("weights")
        case "damaged record" | "record of another kind":
            record = "{" if kind == "damaged record" else "[1]"
            save_file(model.state_dict(), folder / "model.safetensors", {"record": record})
        case "cut safetensors":
            weights.save(model, folder, {})
            content = (folder / "model.safetensors").read_bytes()
            (folder / "model.safetensors").write_bytes(content[:-10])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing tensor", "not those of a graph model: .*rel_mlp.bias"),
        ("tensor too many", "not those of a graph model: .*entity_model.more"),
        ("tensor of another shape", "not those of a graph model: .*mlp.2.weight"),
        ("no question_mlp", "not those of a graph model: .*question_mlp.weight"),
        ("cut off", "cannot be read"),
        ("no file of weights", "cannot be read"),
        ("a list", "cannot be read"),
        ("one tensor", "cannot be read"),
        ("damaged record", "cannot be read"),
        ("record of another kind", "cannot be read"),
        ("code", "cannot be read"),
        ("cut safetensors", "cannot be read"),
    ],
)
def test_damaged_weights_are_refused(model, tmp_path, kind, message):
    damage(tmp_path, model, kind)
    with pytest.raises(ArtefactError, match=message) as refused:
        weights.load(tmp_path)
    assert str(tmp_path) in str(refused.value)
    assert "medhop graph train" in refused.value.hint


def test_missing_weights_are_refused(tmp_path):
    with pytest.raises(ArtefactError, match="there are no weights of a graph model in"):
        weights.load(tmp_path / "nowhere")


@pytest.mark.parametrize("config", ["of other weights", "damaged", "absent"])
def test_the_record_is_in_the_file_of_the_weights(model, tmp_path, config):
    """So that a kill between two files, or what somebody writes into the one for people, takes nothing away."""
    weights.save(GFM(6, 4, 2), tmp_path, {"seed": 1})
    other = (tmp_path / "config.json").read_bytes()
    weights.save(model, tmp_path, {"seed": 3})
    assert json.loads((tmp_path / "config.json").read_bytes()) == weights.load(tmp_path)[1]
    (tmp_path / "config.json").unlink()
    if config != "absent":
        (tmp_path / "config.json").write_bytes(other if config == "of other weights" else b"{")
    loaded, record = weights.load(tmp_path)
    assert same(model, loaded) and record == {"seed": 3, "weights": weights.weights_digest(model)}


def test_a_folder_that_is_a_file_is_refused(model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot read or write .*file"):
        weights.save(model, tmp_path / "file", {})


def test_relations_have_inverses():
    encoder = HashingEncoder()
    vectors = weights.relation_features(["causes", "treats"], encoder).numpy()
    assert np.array_equal(vectors, encoder.embed(["causes", "treats", "inverse causes", "inverse treats"]))
    assert weights.relation_features([], encoder).shape == (0, 32)


def test_vectors_of_relations_are_kept(tmp_path):
    encoder = HashingEncoder()
    first = weights.relation_features(["causes", "treats"], encoder, tmp_path)
    assert torch.equal(weights.relation_features(["causes", "treats"], encoder, tmp_path), first)
    assert encoder.embedded == 4
    other = HashingEncoder("other")
    assert not torch.equal(weights.relation_features(["causes", "treats"], other, tmp_path), first)
    weights.relation_features(["causes", "treats", "new"], encoder, tmp_path)
    assert (encoder.embedded, other.embedded) == (10, 4)


def test_damaged_or_unwritable_vectors_are_made_again(tmp_path):
    encoder = HashingEncoder()
    (tmp_path / "relations.safetensors").write_text("damaged")
    assert weights.relation_features(["causes"], encoder, tmp_path).shape == (2, 32)
    assert weights.relation_features(["causes"], encoder, tmp_path).shape == (2, 32)
    assert encoder.embedded == 2
    assert weights.relation_features(["causes"], encoder, tmp_path / "nowhere").shape == (2, 32)


def test_the_embedder_of_the_training_is_used(tmp_path):
    encoder = HashingEncoder()
    record = {"embedder": asdict(EncoderRecord.of(encoder))}
    assert weights.fitting_embedder(record, encoder, tmp_path) is encoder
    renamed = HashingEncoder("hashing")
    assert weights.fitting_embedder(json.loads(json.dumps(record)), renamed, tmp_path) is renamed
    with pytest.raises(ArtefactError, match="no embedding model 'hashing'"):
        weights.fitting_embedder(record, HashingEncoder("other"), tmp_path)


def test_published_weights_want_their_own_embedder(tmp_path):
    with pytest.raises(ArtefactError, match="no embedding model 'sentence-transformers/all-mpnet-base-v2'"):
        weights.fitting_embedder({}, HashingEncoder(dimension=768), tmp_path)
    own = HashingEncoder("sentence-transformers/all-mpnet-base-v2")
    assert weights.fitting_embedder({}, own, tmp_path) is own


@pytest.mark.parametrize("embedder", [None, "MiniLM", {}, {"digest": "0"}, {"name": 3}, {"name": "m", "digest": 3}])
def test_a_record_that_names_no_embedder_is_refused(embedder, tmp_path):
    with pytest.raises(ArtefactError, match="does not say which embedding model it reads") as refused:
        weights.fitting_embedder({"embedder": embedder}, HashingEncoder(), tmp_path)
    assert "medhop graph train" in refused.value.hint


def test_an_embedder_is_looked_for_in_the_home(tmp_path):
    from medhop_dspy.retrieval.embedding import Embedder

    make_encoder(tmp_path / "models" / "tiny")
    tiny = Embedder("tiny", home=tmp_path)
    record = {"embedder": asdict(EncoderRecord.of(tiny))}
    found = weights.fitting_embedder(record, HashingEncoder(), tmp_path)
    assert (found.name, found.digest) == ("tiny", tiny.digest)
    record["embedder"]["digest"] = "0" * 64
    with pytest.raises(ArtefactError, match="trained on tiny with weights 000000000000, the model of that name"):
        weights.fitting_embedder(record, HashingEncoder(), tmp_path)
