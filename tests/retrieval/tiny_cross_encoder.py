"""A real, minute cross-encoder in FlashRank's file layout, so that FlashRank's own loading code runs in the tests.

Its logits are ``sum over words in both query and passage of overlap + sum over words of the passage of bias[word]``.
The ONNX file is written field by field (numbers from onnx.proto3), because the onnx package is not a dependency.
"""

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_FLOAT, _INT64 = 1, 7


def write_cross_encoder(
    folder: Path,
    onnx_name: str,
    words: list[str],
    *,
    overlap: tuple[float, ...] = (1.0,),
    bias: dict[str, tuple[float, ...]] | None = None,
    model_max_length: int = 512,
    token_types: bool = True,
) -> None:
    """Write model, tokenizer and configuration into ``folder``; ``overlap`` and each bias hold one value per class."""
    folder.mkdir(parents=True)
    vocabulary = {word: i for i, word in enumerate([*_SPECIAL, *dict.fromkeys(words)])}
    shared = np.zeros((len(vocabulary), len(overlap)), dtype=np.float32)
    shared[len(_SPECIAL) :] = overlap
    own = np.zeros_like(shared)
    for word, values in (bias or {}).items():
        own[vocabulary[word]] = values
    (folder / onnx_name).write_bytes(_model(shared, own, token_types))
    _tokenizer(vocabulary).save(str(folder / "tokenizer.json"))
    for name, content in {
        "config.json": {"pad_token_id": 0},
        "tokenizer_config.json": {"model_max_length": model_max_length, "pad_token": "[PAD]"},
        "special_tokens_map.json": {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"},
    }.items():
        (folder / name).write_text(json.dumps(content))


def _tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(t, vocabulary[t]) for t in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _model(shared: np.ndarray, own: np.ndarray, token_types: bool) -> bytes:
    inputs = ["input_ids", "attention_mask"] + ["token_type_ids"] * token_types
    # Without token types every word counts as the passage's and as the query's.
    sides = (
        [
            _node("Cast", ["token_type_ids"], "types", to=_FLOAT),
            _node("Mul", ["mask", "types"], "passage_mask"),
            _node("Sub", ["mask", "passage_mask"], "query_mask"),
        ]
        if token_types
        else [_node("Identity", ["mask"], "passage_mask"), _node("Identity", ["mask"], "query_mask")]
    )
    nodes = [
        _node("Cast", ["attention_mask"], "mask", to=_FLOAT),
        *sides,
        _node("Gather", ["one_hot", "input_ids"], "words", axis=0),  # (n, length, vocabulary)
        *_bag("query"),
        *_bag("passage"),
        _node("Mul", ["query_bag", "passage_bag"], "both"),
        _node("MatMul", ["both", "shared"], "from_overlap"),
        _node("MatMul", ["passage_bag", "own"], "from_passage"),
        _node("Add", ["from_overlap", "from_passage"], "logits"),
    ]
    constants = {"one_hot": np.eye(len(shared), dtype=np.float32), "shared": shared, "own": own, "axis": np.array([2])}
    graph = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, b"tiny"),
            *(_field(5, _tensor(name, array)) for name, array in constants.items()),
            *(_field(11, _value(name, _INT64, ["n", "length"])) for name in inputs),
            _field(12, _value("logits", _FLOAT, ["n", shared.shape[1]])),
        ]
    )
    opset = _field(8, _field(2, 13))
    return _field(1, 8) + opset + _field(7, graph)


def _bag(side: str) -> list[bytes]:
    """Which words occur on one side: (n, vocabulary) of 0 and 1."""
    return [
        _node("Unsqueeze", [f"{side}_mask", "axis"], f"{side}_column"),
        _node("Mul", ["words", f"{side}_column"], f"{side}_words"),
        _node("ReduceMax", [f"{side}_words"], f"{side}_bag", axes=[1], keepdims=0),
    ]


def _node(op: str, inputs: list[str], output: str, **attributes: int | list[int]) -> bytes:
    parts = [*(_field(1, i.encode()) for i in inputs), _field(2, output.encode()), _field(4, op.encode())]
    for name, value in attributes.items():
        many = isinstance(value, list)
        content = b"".join(_field(8, v) for v in value) if many else _field(3, value)
        parts.append(_field(5, _field(1, name.encode()) + content + _field(20, 7 if many else 2)))
    return b"".join(parts)


def _tensor(name: str, array: np.ndarray) -> bytes:
    kind = _FLOAT if array.dtype == np.float32 else _INT64
    return (
        b"".join(_field(1, d) for d in array.shape)
        + _field(2, kind)
        + _field(8, name.encode())
        + _field(9, array.tobytes())
    )


def _value(name: str, kind: int, shape: list[str | int]) -> bytes:
    dims = b"".join(_field(1, _field(1, d) if isinstance(d, int) else _field(2, d.encode())) for d in shape)
    return _field(1, name.encode()) + _field(2, _field(1, _field(1, kind) + _field(2, dims)))


def _field(number: int, value: int | bytes) -> bytes:
    """One protobuf field: a varint, or bytes with their length in front."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
