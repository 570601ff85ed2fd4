"""Parts of a question set: disjoint, stratified, repeatable."""

from collections import Counter
from dataclasses import replace

import pytest

from medhop_dspy.answers import AnswerType
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.datasets import read_gold
from medhop_dspy.evaluation.folds import check_apart, make_folds, split
from tests.conftest import ROOT
from tests.evaluation.compile_world import QUESTIONS

DEV = read_gold(ROOT / "data" / "dev.jsonl")


@pytest.mark.parametrize("count", [2, 5, 45])
def test_every_question_is_in_exactly_one_fold(count):
    folds = make_folds(DEV, count, seed=42)
    assert sorted(each.id for fold in folds for each in fold) == sorted(each.id for each in DEV)
    assert len(folds) == count and max(map(len, folds)) - min(map(len, folds)) <= 1


def test_a_kind_is_spread_over_the_folds():
    folds = make_folds(DEV, 5, seed=42)
    for kind, total in Counter(each.answer_type for each in DEV).items():
        counts = [sum(each.answer_type is kind for each in fold) for fold in folds]
        assert max(counts) - min(counts) <= 1, (kind, total, counts)


def test_the_seed_decides():
    assert make_folds(DEV, 5, 1) == make_folds(DEV, 5, 1) != make_folds(DEV, 5, 2)


@pytest.mark.parametrize(("count", "message"), [(1, "2 folds or more, got 1"), (13, "12 questions cannot fill 13")])
def test_folds_that_cannot_be_made(count, message):
    with pytest.raises(InputError, match=message):
        make_folds(QUESTIONS, count, 0)


@pytest.mark.parametrize(("size", "held_out"), [(2, 1), (10, 2), (45, 9)])
def test_training_and_validation_share_nothing(size, held_out):
    train, validation = split(DEV[:size], 0.8, seed=3)
    assert len(validation) == held_out
    assert {each.id for each in train} | {each.id for each in validation} == {each.id for each in DEV[:size]}
    assert not {each.id for each in train} & {each.id for each in validation}


def test_one_question_is_not_reused_for_validation(caplog):
    assert split(DEV[:1], 0.8, seed=3) == (DEV[:1], [])
    assert "none is left for validation" in caplog.text


def test_test_questions_in_the_training_file_are_named():
    same_id = replace(QUESTIONS[0], text="Another question?")
    same_words = replace(QUESTIONS[1], id="x", text=QUESTIONS[1].text.upper().replace("?", " ?"))
    check_apart(QUESTIONS[:2], QUESTIONS[2:])
    for test, named in ((same_id, "QIDX 0"), (same_words, "QIDX 1")):
        with pytest.raises(InputError, match=f"1 questions to train on are test questions: {named}"):
            check_apart(QUESTIONS, [test])
    check_apart(QUESTIONS, [replace(QUESTIONS[0], id="x", text="Which bone?", answer_type=AnswerType.BONE)])


def test_the_bundled_sets_are_apart():
    check_apart(DEV, read_gold(ROOT / "data" / "test.jsonl"))
