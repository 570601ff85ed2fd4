"""The query strings of one search: plain functions of what is known so far."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from medhop_dspy.answers import AnswerType, Strategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medhop_dspy.trace import Hop

_INTENTS: Final = {
    AnswerType.MEDICAL_SPECIALIST: ("diagnosis", "management", "treatment", "specialist"),
    AnswerType.PROCEDURE: ("diagnostic test", "confirmed by"),
}
_REFERENCE = re.compile(r"#(\d)\b")


def resolve_references(question: str, hops: Sequence[Hop]) -> str:
    """``question`` with ``#1``, ``#2`` ... replaced by the answers of those hops, where they have one."""

    def answer(match: re.Match[str]) -> str:
        number = int(match.group(1))
        known = hops[number - 1].answer if 0 < number <= len(hops) else ""
        return known or match.group(0)

    return _REFERENCE.sub(answer, question)


def locked_entities(hops: Sequence[Hop]) -> list[str]:
    """Answers that steer retrieval, oldest first."""
    return [h.answer for h in hops if h.locked]


def hop_queries(hop_question: str, locked: Sequence[str]) -> list[str]:
    """The hop's question, and the same with the latest locked entity if it does not name it yet."""
    if not locked or locked[-1].casefold() in hop_question.casefold():
        return [hop_question]
    return [hop_question, f"{hop_question} {locked[-1]}"]


def draft_queries(
    question: str,
    strategy: Strategy,
    answer_type: AnswerType,
    *,
    locked: Sequence[str] = (),
    constraints: Sequence[str] = (),
    entity: str = "",
    repair_query: str = "",
) -> list[str]:
    """Query strings for the draft, the repair query last.

    Args:
        question: The user's question.
        strategy: Never changes between rounds.
        answer_type: Never changes between rounds.
        locked: Locked entities, oldest first (multihop).
        constraints: Phrases copied from the question (intersection).
        entity: What intent queries are about (medical_specialist, procedure).
        repair_query: The latest repair query, or the empty string.
    """
    queries = [question]
    kind = answer_type.value.replace("_", " ")
    if strategy is Strategy.INTERSECTION:
        queries += constraints
    if strategy is Strategy.MULTIHOP:
        if locked:
            queries.append(f"{' '.join(locked[-2:])} {kind}")
        queries.append(f"{question} {kind}")
    if entity:
        queries += [f"{entity} {intent}" for intent in _INTENTS.get(answer_type, ())]
    return [*queries, repair_query] if repair_query else queries
