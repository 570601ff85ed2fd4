"""The rules that a repair query has to keep, enforced on what the model wrote."""

from __future__ import annotations

import re
from typing import Final

from medhop_dspy.answers.textnorm import tidy
from medhop_dspy.answers.types import AnswerType
from medhop_dspy.errors import InputError

MAX_QUERY_CHARS: Final = 300

# A rule: at least so many of these words must be in the query; missing ones are added in this order.
_RULES: Final[dict[AnswerType, tuple[tuple[int, tuple[str, ...]], ...]]] = {
    AnswerType.CHROMOSOME: ((1, ("chromosome",)),),
    AnswerType.PRESS_OR_PUBLISHER: ((1, ("published", "press")), (1, ("organization",))),
    AnswerType.MEDICAL_SPECIALIST: (
        (2, ("specialist", "treatment", "diagnosis", "management", "physician", "doctor")),
    ),
    AnswerType.PROCEDURE: ((2, ("diagnostic", "procedure", "test", "diagnosis", "confirmed", "imaging")),),
}
# They steer a search towards the very thing that they exclude.
_EXCLUSIONS = re.compile(r"\b(?:besides|other\s+than|instead\s+of)\b", re.IGNORECASE)


def enforce_repair_query(
    query: str, answer_type: AnswerType, locked_entity: str = "", max_chars: int = MAX_QUERY_CHARS
) -> str:
    """Make a query keep the rules: type words, the locked entity verbatim, no exclusions, a bounded length.

    The entity is put in front where it is missing, type words at the end. A query that is too long loses
    words at the end of its own text, never the entity or the type words, which alone may exceed the limit.
    Enforcing twice gives the same.

    Raises:
        InputError: if there is neither a query nor an entity.
    """
    entity = tidy(locked_entity)
    body = _without_exclusions(tidy(query), entity)
    if not body and not entity:
        raise InputError("the repair query is empty, and no entity is locked", hint="Search for the question itself.")
    words = body[: max_chars + 1].split()
    if len(body) > max_chars:
        words.pop()  # it may be cut
    while words:
        whole = _complete(" ".join(words), answer_type, entity)
        if len(whole) <= max_chars:
            return whole
        words.pop()
    return _complete("", answer_type, entity)


def _complete(body: str, answer_type: AnswerType, entity: str) -> str:
    if entity and not _holds(body, entity):
        body = f"{entity} {body}".strip()
    for least, wanted in _RULES.get(answer_type, ()):
        missing = [w for w in wanted if not _holds(body.casefold(), w)]
        lacking = least - (len(wanted) - len(missing))
        body = " ".join([body, *missing[: max(lacking, 0)]]).strip()
    return body


def _holds(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def _without_exclusions(query: str, entity: str) -> str:
    """Drop the excluding phrases, but not from inside the entity."""
    parts = re.split(f"({re.escape(entity)})", query) if entity else [query]
    while True:
        cleaned = [part if part == entity else _EXCLUSIONS.sub(" ", part) for part in parts]
        if cleaned == parts:
            return " ".join("".join(parts).split())
        parts = [part if part == entity else re.sub(r"\s+", " ", part) for part in cleaned]
