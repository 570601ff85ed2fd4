"""What good is for each predictor by itself, so that a wrong step of a right answer, or the reverse, is seen.

A metric judges one call by the gold fields of its question and by what the program did afterwards. It says right,
wrong, or that it cannot tell: most questions name the articles with their facts, few name every entity on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.answers import AnswerType, exact_match, grounded, occurs, shorten

if TYPE_CHECKING:
    import dspy

    from medhop_dspy.evaluation.records import GoldQuestion


@dataclass(frozen=True, slots=True)
class PredictorCall:
    """One call of a predictor: its name in the program (empty if unknown), inputs and outputs as JSON values."""

    predictor: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One question, what was answered, and every predictor call that gave a usable reply, in order."""

    question: GoldQuestion
    answer: str | None
    calls: tuple[PredictorCall, ...]

    @property
    def right(self) -> bool:
        """Lenient exact match of the answer."""
        return exact_match(self.answer, self.question.golds, self.question.answer_type)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a call did what it should (None: cannot be told), and why, in words for a reflecting model."""

    right: bool | None
    feedback: str


Metric = Callable[[RecordedRun, int], Judgement]


def calls_of(program: dspy.Module, trace: Sequence[tuple[Any, Any, Any]]) -> tuple[PredictorCall, ...]:
    """The entries of DSPy's trace in order, one call each.

    Predictors are told by identity or, where ``trace`` is of a copy of ``program``, by their fields.
    """
    by_id = {id(predictor): name for name, predictor in program.named_predictors()}
    by_fields: dict[Any, str] = {}
    for name, predictor in program.named_predictors():
        fields = _fields(predictor)
        by_fields[fields] = "" if fields in by_fields else name
    return tuple(
        PredictorCall(by_id.get(id(p)) or by_fields.get(_fields(p), ""), _plain(dict(inputs)), _plain(dict(outputs)))
        for p, inputs, outputs in trace
    )


def judge_call(run: RecordedRun, index: int) -> Judgement:
    """The judgement on call ``index`` of ``run``; a predictor without a metric is as right as the final answer."""
    return METRICS.get(run.calls[index].predictor, _final_answer)(run, index)


def misled(run: RecordedRun, index: int) -> bool:
    """Whether call ``index`` is a hop or draft after a hop that was wrong by the last reply about it.

    What it asks, or is told as known, is then about something else, so that it is no example of anything.
    """
    call = run.calls[index]
    if call.predictor not in {"answer_hop", "draft"}:
        return False
    replies = {c.inputs["question"]: i for i, c in enumerate(run.calls[:index]) if c.predictor == "answer_hop"}
    replies.pop(call.inputs["question"], None)
    return any(judge_call(run, place).right is False for place in replies.values())


def bridges(question: GoldQuestion) -> list[str]:
    """Titles of the articles that lead to the answer, hop by hop, as far as the question does not name them.

    >>> from medhop_dspy.evaluation.records import GoldQuestion
    >>> titles = ("Marfan syndrome", "FBN1")
    >>> bridges(GoldQuestion("1", "Where is the gene mutated in Marfan syndrome?", "15", supporting_titles=titles))
    ['FBN1']
    """
    return [
        title
        for title in question.supporting_titles
        if not occurs(title, question.text) and not _is_gold(title, question)
    ]


def names(title: str) -> list[str]:
    """A title, and its parts without and within brackets.

    >>> names("Glucocerebrosidase (enzyme)")
    ['Glucocerebrosidase (enzyme)', 'Glucocerebrosidase', 'enzyme']
    """
    head, bracket, inner = title.partition("(")
    return [title, head.strip(), inner.rstrip(") ")] if bracket and head.strip() and inner.strip(") ") else [title]


def _fields(predictor: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:  # noqa: ANN401
    signature = predictor.signature
    return tuple(signature.input_fields), tuple(signature.output_fields)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    from pydantic import TypeAdapter

    plain: dict[str, Any] = TypeAdapter(dict[str, Any]).dump_python(values, mode="json")
    return plain


def _is_gold(answer: object, question: GoldQuestion) -> bool:
    text = shorten(str(answer), question.answer_type or AnswerType.OTHER)
    return exact_match(text, question.golds, question.answer_type)


def _is_bridge(answer: str, question: GoldQuestion) -> bool:
    return any(exact_match(answer, names(title)) for title in bridges(question))


def _final_answer(run: RecordedRun, index: int) -> Judgement:
    return Judgement(run.right, f"the final answer was {run.answer!r}, wanted {run.question.answer!r}")


def _route(run: RecordedRun, index: int) -> Judgement:
    said = run.calls[index].outputs
    wanted = {"strategy": run.question.strategy, "answer_type": run.question.answer_type}
    known = {name: value.value for name, value in wanted.items() if value is not None}
    wrong = [f"{name} is {said.get(name)}, wanted {value}" for name, value in known.items() if said.get(name) != value]
    return Judgement(not wrong if known else None, "; ".join(wrong) or "as wanted")


def _plan(run: RecordedRun, index: int) -> Judgement:
    wanted = bridges(run.question)
    if not wanted:
        return Judgement(None, "the question set names no entity on the way")
    found = [call.outputs["answer"] for call in run.calls[index + 1 :] if call.predictor == "answer_hop"]
    right = any(_is_bridge(answer, run.question) for answer in found)
    return Judgement(right, f"the sub-questions led to {found}, wanted one of {wanted}")


def _hop(run: RecordedRun, index: int) -> Judgement:
    call, question = run.calls[index], run.question
    answer = shorten(call.outputs["answer"], AnswerType.OTHER)
    if _is_bridge(answer, question) or _is_gold(answer, question):
        return Judgement(True, f"{answer!r} leads to the answer")
    wanted = bridges(question)
    articles = [text for text in call.inputs["evidence"] if any(text.startswith(f"{title}: ") for title in wanted)]
    if not wanted or grounded(answer, articles):  # perhaps another name of it, such as that of a gene's protein
        return Judgement(None, f"cannot tell whether {answer!r} is right")
    return Judgement(False, f"the sub-answer was {answer!r}, wanted one of {[*wanted, question.answer]}")


def _draft(run: RecordedRun, index: int) -> Judgement:
    answer = run.calls[index].outputs["answer"]
    return Judgement(_is_gold(answer, run.question), f"the answer was {answer!r}, wanted {run.question.answer!r}")


def _self_reference(run: RecordedRun, index: int) -> Judgement:
    call = run.calls[index]
    answer = call.inputs["answer"]
    if _is_gold(answer, run.question):
        wanted = "no"
    elif occurs(answer, run.question.text):
        wanted = "yes"
    else:
        return Judgement(None, f"{answer!r} is wrong, but not because it repeats the question")
    return _verdict(call.outputs["repeats"], wanted, answer)


def _type(run: RecordedRun, index: int) -> Judgement:
    call = run.calls[index]
    answer = call.inputs["answer"]
    if not _is_gold(answer, run.question):
        return Judgement(None, f"{answer!r} is wrong, and may be of the right kind")
    return _verdict(call.outputs["fits"], "yes", answer)


def _grounding(run: RecordedRun, index: int) -> Judgement:
    call = run.calls[index]
    answer = call.inputs["answer"]
    return _verdict(call.outputs["supported"], "yes" if _is_gold(answer, run.question) else "no", answer)


def _verdict(said: str, wanted: str, answer: str) -> Judgement:
    return Judgement(said == wanted, f"the verdict on {answer!r} was {said}, wanted {wanted}")


def _repair(run: RecordedRun, index: int) -> Judgement:
    if not run.question.supporting_titles:
        return Judgement(None, "the question set names no article")
    title = run.question.supporting_titles[-1]
    drafts = [(i, call) for i, call in enumerate(run.calls) if call.predictor == "draft"]
    before = [shows_article(call, title) for i, call in drafts if i < index]
    after = [shows_article(call, title) for i, call in drafts if i > index][:1]
    if any(before) or not after:
        return Judgement(None, "there was nothing to find, or nothing new was read")
    return Judgement(after[0], f"the query was {run.calls[index].outputs['query']!r}, the article to find {title!r}")


def shows_article(call: PredictorCall, title: str) -> bool:
    """Whether a passage of the article is in the call's evidence."""
    return any(text.startswith(f"{title}: ") for text in call.inputs["evidence"])


def _shortened(run: RecordedRun, index: int) -> Judgement:
    call = run.calls[index]
    short = call.outputs["short_answer"]
    feedback = f"{call.inputs['answer']!r} was cut down to {short!r}, wanted {run.question.answer!r}"
    return Judgement(_is_gold(short, run.question), feedback)


def _gate(run: RecordedRun, index: int) -> Judgement:
    if run.question.rare_disease is None:
        return Judgement(None, "the question set does not say whether the disease is rare")
    said, wanted = run.calls[index].outputs["rare"], "yes" if run.question.rare_disease else "no"
    return Judgement(said == wanted, f"the verdict was {said}, wanted {wanted}")


METRICS: Final[dict[str, Metric]] = {
    "route": _route,
    "plan_hops": _plan,
    "answer_hop": _hop,
    "draft": _draft,
    "judge_self_reference": _self_reference,
    "validate_type": _type,
    "judge_grounding": _grounding,
    "repair_query": _repair,
    "canonicalize": _shortened,
    "gate_rare_disease": _gate,
}
"""By the predictor's name in the program. An entity is known by the title of its article."""
