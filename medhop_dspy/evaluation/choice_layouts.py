"""Column layouts of multiple-choice sets: which columns mark one, and how its rows become questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from medhop_dspy.evaluation.records import LETTERS, ChoiceQuestion
from medhop_dspy.rows import scalar_text

Fields = Mapping[str, Any]
Converter = Callable[[Fields, int], ChoiceQuestion]

_MEDMCQA_OPTIONS: Final = ("opa", "opb", "opc", "opd")
_DECISIONS: Final = {"yes": "A", "no": "B", "maybe": "C"}


@dataclass(frozen=True, slots=True)
class ChoiceLayout:
    """A way to lay out the rows of a multiple-choice set.

    Attributes:
        name: For messages.
        needs: Columns that mark a set as of this layout.
        converter: From all rows to what turns one row and its number, from 1, into a question. Both raise ValueError
            with the reason.
    """

    name: str
    needs: frozenset[str]
    converter: Callable[[Sequence[Fields]], Converter]


def layout_of(fields: Fields) -> ChoiceLayout | None:
    """The first of :data:`LAYOUTS` that a row has all columns for."""
    return next((layout for layout in LAYOUTS if layout.needs <= fields.keys()), None)


def _medqa(fields: Fields, number: int) -> ChoiceQuestion:
    options = fields["options"]
    if isinstance(options, dict):
        pairs = list(options.items())
    elif isinstance(options, list) and all(isinstance(option, dict) for option in options):  # a copy on the hub
        pairs = [(option.get("key"), option.get("value")) for option in options]
    else:
        pairs = []
    if not pairs or [letter for letter, _ in pairs] != list(LETTERS[: len(pairs)]):
        raise ValueError(f"options is {options!r}, not texts by the letters A, B, ...")
    texts = [text for _, text in pairs]
    return _question(fields.get("id"), number, fields["question"], texts, fields["answer_idx"], "MedQA")


def _medmcqa(rows: Sequence[Fields]) -> Converter:
    """The column ``cop`` counts from 1 in the original files and from 0 on the hub: see :func:`_first_cop`."""
    return partial(_medmcqa_row, first=_first_cop(rows))


def _medmcqa_row(fields: Fields, number: int, *, first: int) -> ChoiceQuestion:
    options = [fields[name] for name in _MEDMCQA_OPTIONS]
    answer = _letter(fields.get("cop"), "cop", first)
    return _question(fields.get("id"), number, fields["question"], options, answer, "MedMCQA")


def _first_cop(rows: Sequence[Fields]) -> int:
    """The number of the first option, by all rows at once: only a count from 0 has 0 or -1, only one from 1 has 4.

    Raises:
        ValueError: the numbers are of both kinds, or 1, 2 and 3 alone, which may be either.
    """
    numbers = {_whole(row.get("cop")) for row in rows}
    from_0, from_1 = not numbers.isdisjoint({-1, 0}), 4 in numbers
    if from_0 and from_1:
        raise ValueError("cop counts from 0 in some rows and from 1 in others: there are 4 and 0 or -1")
    if not from_0 and not from_1 and not numbers.isdisjoint({1, 2, 3}):
        raise ValueError("cop is 1, 2 or 3 in all rows, so it may count from 0 or from 1; read the whole set")
    return 1 if from_1 else 0


def _mmlu(fields: Fields, number: int) -> ChoiceQuestion:
    choices, subject = fields["choices"], str(fields.get("subject") or "MMLU")
    if not isinstance(choices, list):
        raise ValueError(f"choices is {choices!r}, not a list of texts")
    answer = _letter(fields["answer"], "answer", 0)
    return _question(f"{subject}-{number}", number, fields["question"], choices, answer, subject)


def _pubmedqa(fields: Fields, number: int) -> ChoiceQuestion:
    return _pubmedqa_question(fields.get("PMID"), number, fields["QUESTION"], fields["CONTEXTS"], fields)


def _pubmedqa_hub(fields: Fields, number: int) -> ChoiceQuestion:
    context = fields["context"]
    contexts = context.get("contexts") if isinstance(context, dict) else context
    return _pubmedqa_question(fields["pubid"], number, fields["question"], contexts, fields)


def _pubmedqa_question(pmid: object, number: int, text: object, contexts: object, fields: Fields) -> ChoiceQuestion:
    """Without the long answer, which is the conclusion of the abstract and gives the decision away."""
    if not isinstance(contexts, list) or not all(isinstance(context, str) for context in contexts):
        raise ValueError(f"the contexts are {contexts!r}, not a list of texts")
    decision = fields.get("final_decision")
    if decision and decision not in list(_DECISIONS):  # a list, as the value may be of any kind
        raise ValueError(f"final_decision is {decision!r}, not {', '.join(_DECISIONS)}")
    answer = _DECISIONS[decision] if decision else None
    return _question(pmid, number, text, list(_DECISIONS), answer, "PubMedQA", context="\n".join(contexts))


def _question(
    identifier: object,
    number: int,
    text: object,
    options: Sequence[object],
    answer: object,
    source: str,
    *,
    context: str = "",
) -> ChoiceQuestion:
    """The question, its texts as they are; a missing id is its number, a missing answer was kept back."""
    values = list(options)
    while values and values[-1] is None:  # a table has a column for the fifth option even where there are four
        values.pop()
    if not 1 <= len(values) <= len(LETTERS):
        raise ValueError(f"there are {len(values)} options, not 1 to {len(LETTERS)}")
    texts = {letter: scalar_text(value, f"option {letter}") for letter, value in zip(LETTERS, values, strict=False)}
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"the question is {text!r}, not a text")
    letter = answer or ""
    if not isinstance(letter, str) or (letter and letter not in texts):
        raise ValueError(f"the answer is {answer!r}, not one of {', '.join(texts)}")
    name = str(number) if identifier is None else scalar_text(identifier, "the id")
    return ChoiceQuestion(name, text, texts, letter, context, source)


def _letter(value: object, name: str, first: int) -> str:
    """The letter of an option that is given as a letter or as its number; empty for none and for -1."""
    number = _whole(value)
    if value is None or value == "" or number == -1:
        return ""
    if number is not None and 0 <= number - first < len(LETTERS):
        return LETTERS[number - first]
    if isinstance(value, str) and value.upper() in set(LETTERS):
        return value.upper()
    raise ValueError(f"{name} is {value!r}, not a letter or a number from {first}")


def _whole(value: object) -> int | None:
    """The whole number that a cell of a table or a JSON value stands for, if any."""
    if isinstance(value, str) and value.strip().removeprefix("-").isdecimal():
        return int(value)
    return value if type(value) is int else None


LAYOUTS: Final = (
    ChoiceLayout("MedQA", frozenset({"question", "options", "answer_idx"}), lambda rows: _medqa),
    ChoiceLayout("MedMCQA", frozenset({"question", *_MEDMCQA_OPTIONS}), _medmcqa),
    ChoiceLayout("MMLU", frozenset({"question", "choices", "answer"}), lambda rows: _mmlu),
    ChoiceLayout("PubMedQA", frozenset({"QUESTION", "CONTEXTS"}), lambda rows: _pubmedqa),
    ChoiceLayout("PubMedQA on the hub", frozenset({"pubid", "question", "context"}), lambda rows: _pubmedqa_hub),
)
