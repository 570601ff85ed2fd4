import numpy as np
import pytest

from medhop_dspy.errors import InputError
from medhop_dspy.retrieval.fusion import mmr, reciprocal_rank_fusion
from medhop_dspy.trace import Passage


def ranking(ids: str, score: float = 0.5) -> list[Passage]:
    return [Passage(i, i, "", "", f"text {i}", score) for i in ids]


@pytest.mark.parametrize(
    ("rankings", "weights", "expected"),
    [
        pytest.param([], None, {}, id="no rankings"),
        pytest.param(["", ""], None, {}, id="empty rankings"),
        pytest.param(["ab"], None, {"a": 1 / 61, "b": 1 / 62}, id="ranks from 1"),
        pytest.param(["ab", "bc"], None, {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "c": 1 / 62}, id="missing gives nothing"),
        pytest.param(["zb", "az"], None, {"z": 1 / 61 + 1 / 62, "a": 1 / 61, "b": 1 / 62}, id="order by score"),
        pytest.param(["ba", "ab"], None, {"a": 1 / 61 + 1 / 62, "b": 1 / 61 + 1 / 62}, id="ties by id"),
        pytest.param(["aab"], None, {"a": 1 / 61, "b": 1 / 62}, id="repeated in one ranking"),
        pytest.param(["a", "b"], [0.6, 0.4], {"a": 0.6 / 61, "b": 0.4 / 61}, id="weights"),
        pytest.param(["a", "b"], [0.0, 0.4], {"b": 0.4 / 61, "a": 0.0}, id="weight of nothing"),
    ],
)
def test_reciprocal_rank_fusion(rankings, weights, expected):
    fused = reciprocal_rank_fusion([ranking(r) for r in rankings], weights=weights)
    assert [p.id for p in fused] == list(expected)
    assert [p.score for p in fused] == pytest.approx(list(expected.values()))


def test_eta_sets_the_damping():
    assert [p.score for p in reciprocal_rank_fusion([ranking("ab")], eta=0)] == [1.0, 0.5]


def test_input_is_untouched():
    given = ranking("ab", score=0.9)
    fused = reciprocal_rank_fusion([given])
    assert given == ranking("ab", score=0.9)
    assert [(p.id, p.text) for p in fused] == [("a", "text a"), ("b", "text b")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [1.0]}, "1 weights for 2 rankings"),
        ({"weights": [1.0, -0.1]}, "must not be negative"),
        ({"eta": -1}, "eta = -1"),
    ],
)
def test_reciprocal_rank_fusion_refuses(arguments, message):
    with pytest.raises(InputError, match=message):
        reciprocal_rank_fusion([ranking("a"), ranking("b")], **arguments)


def unit(*rows: tuple[float, ...]) -> np.ndarray:
    array = np.array(rows, dtype=np.float32)
    return array / np.linalg.norm(array, axis=1, keepdims=True)


QUERY = unit((1, 0))[0]
# 0 and 1 are twins close to the query, 2 is a little further off on the other side, 3 is far off.
ROWS = unit((1, 0.2), (1, 0.2), (1, -0.4), (0, 1))


@pytest.mark.parametrize(
    ("k", "lam", "expected"),
    [
        pytest.param(4, 1.0, [0, 1, 2, 3], id="relevance alone, ties by number"),
        pytest.param(2, 0.6, [0, 2], id="the twin loses"),
        pytest.param(2, 0.0, [0, 3], id="diversity alone"),
        pytest.param(9, 0.6, [0, 2, 1, 3], id="more than there are"),
    ],
)
def test_mmr(k, lam, expected):
    assert mmr(QUERY, ROWS, k, lam) == expected


def test_mmr_is_the_formula():
    rng = np.random.default_rng(0)
    rows = unit(*rng.normal(size=(40, 8)))
    query = unit(rng.normal(size=8))[0]
    picked: list[int] = []
    for _ in range(15):
        left = [i for i in range(40) if i not in picked]
        picked.append(
            max(left, key=lambda i: 0.6 * rows[i] @ query - 0.4 * max((rows[i] @ rows[j] for j in picked), default=0))
        )
    assert mmr(query, rows, 15, 0.6) == picked


def test_mmr_of_nothing():
    assert mmr(QUERY, np.empty((0, 2), dtype=np.float32), 3, 0.5) == []


@pytest.mark.parametrize(("k", "lam", "message"), [(0, 0.5, "k must be"), (1, 1.1, "lam must"), (1, -0.1, "lam must")])
def test_mmr_refuses(k, lam, message):
    with pytest.raises(InputError, match=message):
        mmr(QUERY, ROWS, k, lam)
