"""Reading held to the evidence: replies are phrases that stand there, and the most probable of several counts.

Small models read one passage well and twelve badly, and what they write freely often is no answer by its form. So a
draft is read from the best passage alone and again from the best four, every reply is one of the phrases that Python
finds in them, and the reply whose tokens the model found most probable counts. Each prompt starts with the passages of
the one before it, which the server need not read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from medhop_dspy import answers
from medhop_dspy.pipelines.evidence import line
from medhop_dspy.replies import held_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dspy

    from medhop_dspy.answers import AnswerType
    from medhop_dspy.pipelines.run import Run
    from medhop_dspy.trace import Passage

_FLOOR: Final = -3.0  # mean log-probability of a reply's tokens below which the model only did as it was told


def sizes(readings: int, found: int) -> list[int]:
    """Passages of each of ``readings`` readings: 1, 4, 16; none again from all that were ``found``."""
    return [4**n for n in range(readings) if n == 0 or 4 ** (n - 1) < found]


async def read(
    run: Run,
    step: str,
    predictor: dspy.Module,
    readings: Sequence[Sequence[Passage]],
    kind: AnswerType,
    *,
    refused: Sequence[str] = (),
    **inputs: Any,  # noqa: ANN401  (those of the predictor)
) -> str:
    """The most probable reply of several readings, one call each; empty if none is of use.

    A reading without a phrase that could be an answer is left out, as every one is for yes and no.

    Args:
        run: Where calls and failures are recorded.
        step: Name of the step for failures.
        predictor: Has the inputs ``evidence`` and ``question`` and the output ``answer``.
        readings: Passages of each, in the order of the prompt.
        kind: What the phrases must look like.
        refused: Names that are no answers.
        **inputs: Further inputs, ``question`` among them.
    """
    best, confidence = "", _FLOOR
    for passages in readings:
        lines = [line(p) for p in passages]
        phrases = answers.candidates(lines, f"{inputs['question']} {run.question}", kind, refused)
        reply = await run.ask(step, predictor, evidence=lines, config=held_to(phrases), **inputs) if phrases else None
        if reply and reply.answer in phrases and _confidence(reply) > confidence:
            best, confidence = reply.answer, _confidence(reply)
    return best


def _confidence(reply: dspy.Prediction) -> float:
    """Mean log-probability of the reply's tokens, 0 at most; 0 where the server does not tell."""
    tokens = (reply.get("logprobs") or {}).get("content") or ()
    return sum(token["logprob"] for token in tokens) / len(tokens) if tokens else 0.0
