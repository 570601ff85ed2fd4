"""A submission to MedHopQA's CodaBench: a flat zip with README.md, submission.csv and Team.txt, made from a run."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from medhop_dspy.answers import normalise
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.exports import csv_bytes
from medhop_dspy.evaluation.outcomes import Result
from medhop_dspy.questions import read_questions
from medhop_dspy.rows import by_id, csv_records, read_utf8

MAX_WORDS: Final = 3  # of a short answer, by the rules of the task
FILES: Final = ("README.md", "submission.csv", "Team.txt")
_SHOWN: Final = 5  # ids in a message
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the first date that a zip can hold


@dataclass(frozen=True, slots=True)
class Row:
    """One question of the template with its answers, both empty where there is none; all texts exactly as given."""

    id: str
    question: str
    short: str = ""
    long: str = ""

    @property
    def answered(self) -> bool:
        """Whether there is a short answer."""
        return bool(self.short.strip())


@dataclass(frozen=True, slots=True)
class Submission:
    """The rows of a submission, one for each question of the template, in its order."""

    rows: tuple[Row, ...]

    @property
    def missing(self) -> list[str]:
        """Ids without an answer, in order."""
        return [row.id for row in self.rows if not row.answered]

    @property
    def wordy(self) -> list[str]:
        """Ids whose short answer has more than three words, in order."""
        return [row.id for row in self.rows if len(row.short.split()) > MAX_WORDS]

    def csv(self, *, three_columns: bool = False) -> bytes:
        """``QIDX,Question,Short Answer,Long Answer``, or with three columns ``QIDX,Question,Answer``.

        A scorer reads it, so every value is as it was given: ``-5`` and ``=1+1`` too.
        """
        if three_columns:
            return csv_bytes(("QIDX", "Question", "Answer"), ((row.id, row.question, row.short) for row in self.rows))
        header = ("QIDX", "Question", "Short Answer", "Long Answer")
        return csv_bytes(header, ((row.id, row.question, row.short, row.long) for row in self.rows))

    def readme(self, name: str, number: int = 1) -> bytes:
        """``Run #1`` and the name below; a third line says so where answers are missing."""
        lines = [f"Run #{number}", " ".join(name.split())]
        if self.missing:
            lines.append(f"Partial submission: {len(self.missing):,} of {len(self.rows):,} questions have no answer.")
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def read_template(path: Path) -> list[Row]:
    """The questions to be answered, in order, without answers.

    Of a ``.csv`` file, QIDX and Question are taken exactly as they stand; other files are read by
    :func:`medhop_dspy.questions.read_questions`.

    Raises:
        InputError: as :func:`medhop_dspy.questions.read_questions`.
    """
    if path.suffix.lower() != ".csv":
        return [Row(question.id, question.text) for question in read_questions(path)]
    records = csv_records(read_utf8(path), path, ("QIDX", "Question"))
    rows = (
        (f"line {line}", record["qidx"].strip(), Row(record["qidx"], record["question"])) for line, record in records
    )
    return list(by_id(rows, path, "QIDX").values())


def fill(template: Sequence[Row], results: Sequence[Result], *, allow_missing: bool = False) -> Submission:
    """The template with the answers of a run; answers to other questions are left out.

    A question that failed has no answer, whatever was written before it failed.

    Raises:
        InputError: no question is answered; the run asked another question under an id of the template; or, unless
            ``allow_missing``, a question failed, has no answer or was not asked. Ids are named.
    """
    by_key = {result.id: result for result in results}
    _check_texts(template, by_key)
    submission = Submission(tuple(_filled(row, by_key.get(row.id.strip())) for row in template))
    missing = submission.missing
    if len(missing) == len(template):
        raise InputError(
            f"0 of {len(template):,} questions are answered{_reasons(missing, by_key)}",
            hint="Give the folder of a run over these questions.",
        )
    if missing and not allow_missing:
        raise InputError(
            f"{len(missing):,} of {len(template):,} questions have no answer{_reasons(missing, by_key)}",
            hint="Run them again, or submit what there is with --allow-missing.",
        )
    return submission


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """A flat zip of ``files`` in their order; the same files give the same bytes.

    Nothing is compressed: what a compressor makes of the same text depends on its version.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3  # Unix, also where this runs on something else
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
    return stream.getvalue()


def pack(submission: Submission, team: bytes, *, name: str, number: int = 1, three_columns: bool = False) -> bytes:
    """The zip of a submission: README.md, submission.csv and Team.txt, which holds ``team`` as given."""
    contents = (submission.readme(name, number), submission.csv(three_columns=three_columns), team)
    return zip_bytes(dict(zip(FILES, contents, strict=True)))


def _filled(row: Row, result: Result | None) -> Row:
    if result is None or not result.answered or not (result.answer or "").strip():
        return row
    return Row(row.id, row.question, result.answer or "", result.long_answer)


def _check_texts(template: Sequence[Row], results: Mapping[str, Result]) -> None:
    for row in template:
        result = results.get(row.id.strip())
        if result and normalise(result.question) != normalise(row.question):
            raise InputError(
                f"QIDX {row.id}: the run answered {result.question!r}, the template asks {row.question!r}",
                hint="Give the question file that the run was made from.",
            )


def _reasons(missing: Sequence[str], results: Mapping[str, Result]) -> str:
    """Why each of ``missing`` has no answer, by kind, with the first ids of each."""
    kinds: dict[str, list[str]] = {}
    for key in missing:
        result = results.get(key.strip())
        kind = "not asked" if result is None else "without an answer" if result.answered else "failed"
        kinds.setdefault(kind, []).append(key)
    parts = []
    for kind, ids in kinds.items():
        shown = [*ids[:_SHOWN], *(["..."] if len(ids) > _SHOWN else [])]
        parts.append(f"{len(ids):,} {kind} ({', '.join(shown)})")
    return f": {'; '.join(parts)}"
