"""The checks of a draft: Python decides what it can, the model the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from medhop_dspy import answers
from medhop_dspy.answers import AnswerType
from medhop_dspy.pipelines.evidence import line
from medhop_dspy.signatures import HopType
from medhop_dspy.trace import CheckName, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dspy

    from medhop_dspy.pipelines.run import Run

# Types whose answers are common words, so that an occurrence alone proves little: the sentence that holds the
# answer must also speak of what was asked.
QUOTE_TYPES: Final = frozenset({AnswerType.FLUID_TYPE, AnswerType.FIELD_OF_BIOLOGY, AnswerType.DURATION})


@dataclass(frozen=True)
class Judges:
    """The predictors that decide what Python cannot."""

    self_reference: dspy.Module
    type: dspy.Module
    grounding: dspy.Module


async def validate(run: Run, judges: Judges, draft: str, answer_type: AnswerType) -> tuple[list[Verdict], str]:
    """Verdicts on ``draft``, and the sentence that supports it.

    Python's checks all run; the model is asked only if they pass, and no further than its first refusal, since a
    draft that is refused once needs a repair whatever the others say.
    """
    if not draft:
        return [Verdict("format", False, "python", "no draft")], ""
    verdicts, open_checks, quote = _by_python(run, draft, answer_type)
    if not all(v.passed for v in verdicts):
        return verdicts, quote
    for check in open_checks:
        verdict = await _by_model(run, judges, check, draft, answer_type, quote)
        verdicts.append(verdict)
        if not verdict.passed:
            break
    return verdicts, quote


def _by_python(run: Run, draft: str, answer_type: AnswerType) -> tuple[list[Verdict], list[CheckName], str]:
    """Verdicts that Python can give, the checks that stay open, and the supporting sentence."""
    settings = run.settings
    verdicts: list[Verdict] = []
    undecided: list[CheckName] = []

    def decide(check: CheckName, passed: bool | None, reason: str = "") -> None:
        if passed is None:
            undecided.append(check)
        else:
            verdicts.append(Verdict(check, passed, "python", "" if passed else reason))

    if settings.use_self_reference_check:
        repeats = answers.check_self_reference(draft, run.question)
        if run.reduced and any(answers.exact_match(draft, h.answer) for h in run.hops if h.locked):
            decide("self_reference", False, "repeats what a hop found, and the question asks for more")
        else:
            decide("self_reference", None if repeats is None else not repeats, "repeats the question")
    if settings.use_generic_filter and (answers.is_generic(draft) or answers.is_placeholder(draft)):
        decide("type", False, "a category word, not an answer")
    elif settings.use_type_check:
        verdict = answers.check_format(draft, answer_type)
        decide("type", verdict.ok, verdict.reason)
    asked = run.asked_question()
    quote = answers.supporting_quote(draft, asked, [line(p) for p in run.shown], answer_type)
    sentence = quote.text if quote else ""
    exempt = answer_type is AnswerType.YES_NO
    if settings.use_grounding_check:
        decide("grounding", None if quote or exempt else False, "does not occur in the evidence")
    if settings.use_quote_check and needs_quote(run.question, answer_type):
        supported = bool(answers.shared_words(sentence, asked, draft))
        decide("quote", supported, "no sentence of the evidence connects it with the question")
    return verdicts, undecided, sentence


def needs_quote(question: str, answer_type: AnswerType) -> bool:
    """Whether the answer needs a sentence that connects it with the question."""
    return answer_type in QUOTE_TYPES or "half-life" in question.casefold()


async def _by_model(
    run: Run, judges: Judges, check: CheckName, draft: str, answer_type: AnswerType, quote: str
) -> Verdict:
    if not run.settings.use_model_judges:
        return Verdict(check, True, "python", "undecided, and model judges are off")
    evidence = [line(p) for p in run.shown]
    shared = {"evidence": evidence, "question": run.asked_question(), "answer": draft}
    if check == "self_reference":
        reply = await run.ask(check, judges.self_reference, **shared)
        passed = reply is not None and reply.repeats == "no"
    elif check == "type":
        kind = answers.ANSWER_TYPES[answer_type].meaning
        reply = await run.ask(check, judges.type, **shared, required_kind=kind)
        passed = reply is not None and reply.fits == "yes"
    else:
        reply = await run.ask(check, judges.grounding, **shared, quote=quote)
        passed = reply is not None and reply.supported == "yes"
    reason = "" if passed else ("no usable verdict" if reply is None else "refused by the model")
    return Verdict(check, passed, "model", reason)


def hop_answer(reply: str, hop_type: str, question: str, evidence: Sequence[str]) -> tuple[str, str]:
    """A hop's reply as an answer, or why it is none: ``(answer, "")`` or ``("", reason)``.

    A yes_no hop gives exactly ``Yes`` or ``No``. Anything else must be specific, new to the question and in the
    evidence.
    """
    if hop_type == HopType.YES_NO:
        decision = answers.canon(AnswerType.YES_NO, reply)
        return (decision.capitalize(), "") if decision else ("", f"neither yes nor no: {reply[:60]!r}")
    answer = answers.shorten(reply, AnswerType.OTHER)
    if not answers.is_specific(answer, hop_type):
        return "", f"not specific: {reply[:60]!r}"
    if answers.check_self_reference(answer, question):
        return "", f"repeats the question: {answer!r}"
    if answers.grounded(answer, evidence, AnswerType.OTHER) is None:
        return "", f"does not occur in the evidence: {answer!r}"
    return answer, ""
