"""Metrics and statistics: the examples of their docstrings, and tables of what counts as right."""

import doctest

import dspy
import numpy as np
import pytest

from medhop_dspy.answers import AnswerType
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation import metrics, statistics
from medhop_dspy.evaluation.metrics import answer_metric, official_match, recall_at, token_f1
from medhop_dspy.evaluation.statistics import bootstrap_ci, compare, kappa


@pytest.mark.parametrize("module", [metrics, statistics])
def test_the_examples_of_the_docstrings_hold(module):
    result = doctest.testmod(module)
    assert result.attempted >= 5
    assert result.failed == 0


@pytest.mark.parametrize(
    ("pred", "golds", "right"),
    [
        ("FBN1.", ["fbn1"], True),
        ("MFS1", ["FBN1", "MFS1"], True),
        ("X-linked", ["X linked"], True),
        ("X-linked", ["Xlinked"], True),
        ("the FBN1 gene", ["FBN1 gene"], False),
        ("Sjögren's syndrome", ["Sjögrens syndrome"], True),
        ("15", ["1"], False),
        ("", ["15"], False),
        ("  ", ["15"], False),
        ("...", ["..."], False),
        (None, ["15"], False),
    ],
)
def test_official_match(pred, golds, right):
    assert official_match(pred, golds) is right


@pytest.mark.parametrize(
    ("pred", "golds", "f1"),
    [
        ("Marfan syndrome", ["marfan Syndrome."], 1.0),
        ("type 2 diabetes", ["diabetes"], 0.5),
        ("diabetes", ["gout", "diabetes mellitus"], 2 / 3),
        ("gout gout", ["gout"], 2 / 3),
        ("gout", ["diabetes"], 0.0),
        ("", [""], 0.0),
        ("x", [], 0.0),
    ],
)
def test_token_f1(pred, golds, f1):
    assert token_f1(pred, golds) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("k", "golds", "kind", "found"),
    [
        (1, ["FBN1"], None, False),
        (2, ["FBN1"], None, True),
        (2, ["no such", "fbn1"], None, True),
        (20, ["FBN"], None, False),
        (20, ["15"], AnswerType.CHROMOSOME, False),
        (20, ["yes"], AnswerType.YES_NO, False),
    ],
)
def test_recall_at(k, golds, kind, found):
    assert recall_at(k, ["It begins at 15 years, yes.", "The FBN1 gene."], golds, kind) is found


@pytest.mark.parametrize(
    ("fields", "answer", "right"),
    [
        ({"answer": "15", "answer_type": "chromosome"}, "chr15", True),
        ({"answer": "15", "answer_type": "chromosome"}, "21", False),
        ({"answer": "FBN1", "synonyms": ["MFS1"]}, "MFS1", True),
        ({"answer": "FBN1", "synonyms": ("MFS1",), "answer_type": None}, "FBN2", False),
        ({"answer": "15"}, None, False),
    ],
)
def test_answer_metric_is_a_plain_bool_as_optimisers_need_it(fields, answer, right):
    assert answer_metric(dspy.Example(**fields), dspy.Prediction(answer=answer), trace=[]) is right


def test_answers_of_several_characters_are_compared_whole():
    assert not answer_metric(dspy.Example(answer="1"), dspy.Prediction(answer="18"))


def test_a_bootstrap_interval_is_repeatable_and_holds_the_mean():
    values = [1.0] * 30 + [0.0] * 15
    one = bootstrap_ci(values)
    assert one == bootstrap_ci(values)
    uneven = np.random.default_rng(0).random(30)
    assert bootstrap_ci(uneven) != bootstrap_ci(uneven, seed=1)
    assert one.low < one.mean < one.high and one.mean == pytest.approx(2 / 3)
    expected = 1.96 * np.sqrt(2 / 9 / 45)  # of the normal distribution
    assert (one.high - one.low) / 2 == pytest.approx(expected, rel=0.1)
    assert bootstrap_ci([1, 1]).low == 1.0


def test_compare_pairs_by_question():
    first, second = [True, True, False, False], [True, False, True, True]
    result = compare(first, second)
    assert (result.gained, result.lost, result.difference.mean) == (2, 1, 0.25)
    assert compare(first, first).p == 1.0
    assert compare(second, first).difference.mean == -0.25


def test_kappa_of_one_answer_everywhere():
    assert kappa(["a", "a"], ["a", "a"]) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_ci([]), "the set of questions is empty"),
        (lambda: compare([True], []), "cannot pair 1 with 0"),
        (lambda: compare([], []), "the set of questions is empty"),
        (lambda: kappa(["a"], []), "cannot pair 1 with 0"),
        (lambda: kappa([], []), "cannot pair 0 with 0"),
    ],
)
def test_nothing_to_average_or_pair_is_an_error(call, message):
    with pytest.raises(InputError, match=message):
        call()
