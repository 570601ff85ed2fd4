"""Examples for every predictor out of recorded runs and gold fields, and what a demo may hold.

Demos stand without their evidence, which the adapter never shows in one. On 37 of the bundled dev questions a demo of a
draft has 44 tokens (of the MiniLM encoder's tokenizer); with one supporting passage it would have 164, with all twelve
1,200, and three of these would fill the window of a small model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.adapter import EVIDENCE
from medhop_dspy.answers import AnswerType, grounded, normalise
from medhop_dspy.errors import ProgramError
from medhop_dspy.evaluation.predictor_metrics import RecordedRun, bridges, judge_call, misled, shows_article
from medhop_dspy.evaluation.records import GoldQuestion

if TYPE_CHECKING:
    import dspy

    from medhop_dspy.evaluation.records import Question

_Outputs = dict[str, Any]
_YES: Final = {True: "yes", False: "no"}


def predictor_examples(runs: Iterable[RecordedRun]) -> dict[str, list[dspy.Example]]:
    """Examples with right outputs, by predictor, the most useful first.

    The inputs are those of recorded calls, without evidence. The output is the gold label where the question set has
    one for this predictor, else the model's own where :func:`judge_call` calls it right; one that cannot be judged is
    left out. Examples come in turn from every kind (the reply of a judge or router, else the answer type), the
    shortest of each kind first.
    """
    import dspy

    found: dict[str, dict[str, dict[str, dspy.Example]]] = {}
    for run in runs:
        for index, call in enumerate(run.calls):
            outputs = _right_outputs(run, index)
            if not call.predictor or outputs is None:
                continue
            inputs = {name: value for name, value in call.inputs.items() if name != EVIDENCE}
            example = dspy.Example(**inputs, **outputs).with_inputs(*inputs)
            kind = str(outputs) if call.predictor in _CLOSED else str(run.question.answer_type)
            found.setdefault(call.predictor, {}).setdefault(kind, {})[str(example.toDict())] = example
    return {name: list(_in_turn(kinds.values())) for name, kinds in found.items()}


def tidy_demos(program: dspy.Module) -> None:
    """Leave in every demo what its predictor's signature has, evidence aside, and drop demos without an output."""
    import dspy

    for predictor in program.predictors():
        inputs = [name for name in predictor.signature.input_fields if name != EVIDENCE]
        outputs = list(predictor.signature.output_fields)
        predictor.demos = [
            dspy.Example(**{name: demo[name] for name in (*inputs, *outputs) if name in demo}).with_inputs(*inputs)
            for demo in predictor.demos
            if all(name in demo for name in outputs)
        ]


def check_demos(document: Mapping[str, Any], test: Sequence[Question]) -> None:
    """Refuse a saved program that has seen a question of ``test``.

    Args:
        document: From :func:`medhop_dspy.saving.read`.
        test: Questions that the program is to be measured on.

    Raises:
        ProgramError: a demo holds the wording of one (case and punctuation aside), or the manifest names its QIDX
            among the questions that the program was compiled on.
    """
    wordings = {normalise(question.text): question.id for question in test}
    problems = [
        f"a demo of {name} holds test question {wordings[normalise(text)]}"
        for name, predictor in document["state"].items()
        for demo in predictor["demos"]
        for text in _texts(demo)
        if normalise(text) in wordings
    ]
    trained = set(document["medhop"].get("compiling", {}).get("train", ()))
    # Ids of multiple choice are of another kind: programs are compiled on open questions.
    numbered = [each.id for each in test if isinstance(each, GoldQuestion)]
    problems += [f"it was compiled on test question {each}" for each in numbered if each in trained]
    if problems:
        raise ProgramError(
            f"the program has seen what it is to be tested on: {'; '.join(problems)}",
            hint="Compile it again on questions that are not in the test file.",
        )


def _right_outputs(run: RecordedRun, index: int) -> _Outputs | None:
    """What call ``index`` should have said, or None where that is not known."""
    call = run.calls[index]
    if misled(run, index):
        return None
    labeller = _LABELS.get(call.predictor)
    label = labeller(run, index) if labeller else None
    return label or (call.outputs if judge_call(run, index).right else None)


def _route(run: RecordedRun, index: int) -> _Outputs | None:
    question = run.question
    if question.strategy is None or question.answer_type is None:
        return None
    return {"strategy": question.strategy.value, "answer_type": question.answer_type.value}


def _gate(run: RecordedRun, index: int) -> _Outputs | None:
    return None if run.question.rare_disease is None else {"rare": _YES[run.question.rare_disease]}


def _hop(run: RecordedRun, index: int) -> _Outputs | None:
    """The article's title, where each sub-question asks for one article and the evidence names it."""
    call = run.calls[index]
    if judge_call(run, index).right is not False:
        return None
    asked = list(dict.fromkeys(each.inputs["question"] for each in run.calls if each.predictor == "answer_hop"))
    wanted = bridges(run.question)
    title = wanted[asked.index(call.inputs["question"])] if len(asked) == len(wanted) else ""
    return {"answer": title} if title and grounded(title, call.inputs[EVIDENCE]) else None


def _draft(run: RecordedRun, index: int) -> _Outputs | None:
    """A gold answer in place of a wrong draft, where the draft asked for its type and what evidence it had holds it."""
    call, question = run.calls[index], run.question
    if judge_call(run, index).right or call.inputs["answer_type"] != question.answer_type:
        return None
    if EVIDENCE not in call.inputs:
        return {"answer": question.answer}
    if question.answer_type is AnswerType.YES_NO:
        shown = bool(question.supporting_titles) and shows_article(call, question.supporting_titles[-1])
        return {"answer": question.answer} if shown else None
    held = [gold for gold in question.golds if grounded(gold, call.inputs[EVIDENCE], question.answer_type)]
    return {"answer": held[0]} if held else None


def _opposite(field: str) -> Callable[[RecordedRun, int], _Outputs | None]:
    """The verdict that is wanted, where the one given is known to be wrong."""

    def label(run: RecordedRun, index: int) -> _Outputs | None:
        wrong = judge_call(run, index).right is False
        return {field: _YES[run.calls[index].outputs[field] == "no"]} if wrong else None

    return label


_LABELS: Final[dict[str, Callable[[RecordedRun, int], _Outputs | None]]] = {
    "route": _route,
    "gate_rare_disease": _gate,
    "answer_hop": _hop,
    "draft": _draft,
    "judge_self_reference": _opposite("repeats"),
    "validate_type": _opposite("fits"),
    "judge_grounding": _opposite("supported"),
}
_CLOSED: Final = frozenset(_LABELS) - {"answer_hop", "draft"}


def _in_turn(kinds: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """The examples (by their texts), one of each kind after the other, the shortest first."""
    piles = [[examples[text] for text in sorted(examples, key=lambda t: (len(t), t))] for examples in kinds]
    for row in zip_longest(*piles):
        yield from (example for example in row if example is not None)


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
