"""Readers of question sets with gold answers, and of files of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.choice_layouts import layout_of
from medhop_dspy.evaluation.choices import KINDS, choices_of, read_choices
from medhop_dspy.evaluation.records import ChoiceQuestion, GoldQuestion
from medhop_dspy.rows import by_id, csv_records, json_lines, json_objects, read_utf8, scalar_text

__all__ = ["choices_of", "read_answers", "read_choices", "read_gold", "read_hotpotqa", "read_set"]

_Closed = TypeVar("_Closed", bound=StrEnum)


_OPEN: Final = frozenset({"QIDX", "Question", "answer"})


def read_set(path: Path) -> list[GoldQuestion] | list[ChoiceQuestion]:
    """The questions of a file with gold answers, open or multiple-choice, as its columns say.

    JSON lines with QIDX, Question and answer are open questions (see :func:`read_gold`); everything else is taken as
    :func:`~medhop_dspy.evaluation.choices.read_choices` does.

    Raises:
        InputError: as these two; the hint on a file of neither kind names what both need.
    """
    if path.is_dir() or path.suffix.lower() in KINDS - {".jsonl"}:
        return read_choices(path)
    _, first = next(json_lines(read_utf8(path), path), (1, {}))
    if layout_of(first) is None and (not first or _OPEN & first.keys()):
        return read_gold(path)
    return read_choices(path)


def read_gold(path: Path) -> list[GoldQuestion]:
    """Open questions of a JSONL file in the layout of ``data/dev.jsonl``, in order.

    Needed are QIDX, Question and answer; synonyms, answer_type, strategy, hops, supporting_titles, subject and
    rare_disease may be absent.

    Raises:
        InputError: the file cannot be read, is not UTF-8 or JSONL, lacks a field, has one of the wrong kind, an
            empty gold answer or a QIDX twice; the message names the line.
    """
    rows = json_lines(read_utf8(path), path)
    return _questions(((f"line {number}", row) for number, row in rows), path, "QIDX", _gold)


def read_hotpotqa(path: Path) -> list[GoldQuestion]:
    """The questions of a file of HotpotQA, such as ``hotpot_train_v1.1.json``, in order.

    The supporting titles are in the order of the file's facts, which need not be that of the hops; ``hops`` is their
    number. Kept are yes and no as answer type, and no other.

    Raises:
        InputError: the file cannot be read, is not UTF-8 or JSON, lacks a field, has one of the wrong kind or an
            ``_id`` twice; the message names the item, from 1.
    """
    return _questions(json_objects(read_utf8(path), path, key="_id"), path, "_id", _hotpot)


def read_answers(path: Path) -> dict[str, str]:
    """Answers by QIDX of a CSV file with the columns QIDX and Answer, in order; both exactly as they stand there.

    Other columns are passed over. An answer may be empty.

    Raises:
        InputError: the file cannot be read, is not UTF-8, lacks a column, has a ragged row, an empty or duplicate
            QIDX or no row, each with its place.
    """
    records = csv_records(read_utf8(path), path, ("QIDX", "Answer"))
    return by_id(((f"line {line}", row["qidx"], row["answer"]) for line, row in records), path, "QIDX")


def _questions(
    rows: Iterable[tuple[str, dict[str, Any]]], path: Path, key: str, convert: Callable[[dict[str, Any]], GoldQuestion]
) -> list[GoldQuestion]:
    items = []
    for place, row in rows:
        try:
            question = convert(row)
        except (KeyError, ValueError) as error:
            reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{path}, {place}: {reason}", hint="Add or mend the field.") from error
        items.append((place, question.id, question))
    return list(by_id(items, path, key).values())


def _hotpot(row: dict[str, Any]) -> GoldQuestion:
    answer = _text(row["answer"], "answer")
    facts = row["supporting_facts"]
    if not isinstance(facts, list) or not all(isinstance(fact, list) and len(fact) == 2 for fact in facts):
        raise ValueError(f"supporting_facts is {facts!r}, not a list of pairs of title and sentence")
    titles = tuple(dict.fromkeys(_text(title, "a supporting title") for title, _ in facts))
    return GoldQuestion(
        id=_text(row["_id"], "_id"),
        text=_text(row["question"], "question"),
        answer=answer,
        answer_type=AnswerType.YES_NO if answer in {"yes", "no"} else None,
        hops=len(titles),
        supporting_titles=titles,
    )


def _gold(row: dict[str, Any]) -> GoldQuestion:
    row = {name: value for name, value in row.items() if value is not None}
    hops, rare = row.get("hops", 0), row.get("rare_disease")
    if type(hops) is not int or hops < 0:
        raise ValueError(f"hops is {hops!r}, not a whole number")
    if rare is not None and not isinstance(rare, bool):
        raise ValueError(f"rare_disease is {rare!r}, not true or false")
    return GoldQuestion(
        id=_text(scalar_text(row["QIDX"], "QIDX"), "QIDX"),
        text=_text(row["Question"], "Question"),
        answer=_text(row["answer"], "answer"),
        synonyms=_texts(row, "synonyms"),
        answer_type=_member(AnswerType, row, "answer_type"),
        strategy=_member(Strategy, row, "strategy"),
        hops=hops,
        supporting_titles=_texts(row, "supporting_titles"),
        subject=_text(row["subject"], "subject") if row.get("subject", "") != "" else "",
        rare_disease=rare,
    )


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} is {value!r}, not a text")
    return value.strip()


def _texts(row: dict[str, Any], name: str) -> tuple[str, ...]:
    values = row.get(name, [])
    if not isinstance(values, list):
        raise ValueError(f"{name} is {values!r}, not a list of texts")
    return tuple(_text(value, name) for value in values)


def _member(closed: type[_Closed], row: dict[str, Any], name: str) -> _Closed | None:
    return closed(row[name]) if name in row else None
