"""The lines of a run, ``results.jsonl``: one JSON object a question, appended, never rewritten."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, Self

from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.errors import DiskFullError, InputError
from medhop_dspy.evaluation.metrics import measures
from medhop_dspy.evaluation.records import GoldQuestion
from medhop_dspy.retrieval.disk import is_disk_full
from medhop_dspy.rows import scalar_text
from medhop_dspy.trace import Hop, Passage, Trace, Usage

RESULTS: Final = "results.jsonl"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one question. A line has these fields, with QIDX and Question in front.

    Attributes:
        gold: The question with its gold answer; ``subject`` is not kept.
        key: Hash of question, program, settings, index and model; see :func:`run_folder.question_key`.
        status: ``answered``, also without an answer that passed the checks, or ``failed``.
        error: ``Class: message`` of what failed, or empty.
        failed_in: ``program``; ``metric`` where an answer is there and a measure could not be taken; or empty.
        answer: As in :func:`medhop_dspy.pipelines.program.as_record`, like all fields down to ``trace``.
        trace: None where the program failed.
        em: Lenient exact match of the answer; None where the question failed, like all measures below. It and the
            next three are taken whenever a line is read, so that all runs are measured alike.
        em_strict: Exact match of the trimmed string.
        em_official: Exact match as MedHopQA's organisers describe it.
        f1: Token F1, 0 to 1.
        gold_in_evidence: Whether the program's evidence holds a gold answer; None for yes and no.
        article_in_evidence: Whether a passage of the last supporting title is in the evidence; None without titles.
        recall: By k, whether the first k passages for the question alone hold a gold answer; None for yes and no.
        extra: Fields of the line that this version does not know.
    """

    gold: GoldQuestion
    key: str
    status: Literal["answered", "failed"]
    error: str = ""
    failed_in: Literal["", "program", "metric"] = ""
    answer: str | None = None
    draft: str = ""
    validated: bool = False
    strategy: str = ""
    answer_type: str = ""
    hops: tuple[Hop, ...] = ()
    evidence: tuple[Passage, ...] = ()
    quote: str = ""
    long_answer: str = ""
    lm_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    trace: Trace | None = None
    em: bool | None = None
    em_strict: bool | None = None
    em_official: bool | None = None
    f1: float | None = None
    gold_in_evidence: bool | None = None
    article_in_evidence: bool | None = None
    recall: dict[int, bool] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """QIDX."""
        return self.gold.id

    @property
    def question(self) -> str:
        """The question as it was asked."""
        return self.gold.text

    @property
    def answered(self) -> bool:
        """Whether the question need not be asked again."""
        return self.status == "answered"

    @property
    def scored(self) -> bool:
        """Whether it is known if the answer is right."""
        return self.answered and self.em is not None

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Self:
        """The record of a line; fields that an older version did not write have their defaults.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: the line is not one of a run.
        """
        if line["status"] not in {"answered", "failed"}:
            raise ValueError(f"status is {line['status']!r}, not answered or failed")
        values = {name: line[name] for name in _PLAIN if name in line}
        for name, read in _READERS.items():
            if line.get(name) is not None:
                values[name] = read(line[name])
        if line.get("failed_in") == "metric":
            values["status"] = "answered"
        gold, extra = _gold(line), {name: value for name, value in line.items() if name not in _KNOWN}
        if values["status"] == "answered":
            values |= _measured(values.get("answer"), gold)
        return cls(gold=gold, key=str(line["key"]), extra=extra, **values)


def gold_fields(question: GoldQuestion) -> dict[str, Any]:
    """The field ``gold`` of a line."""
    return {
        "answer": question.answer,
        "synonyms": list(question.synonyms),
        "answer_type": question.answer_type,
        "strategy": question.strategy,
        "hops": question.hops,
        "supporting_titles": list(question.supporting_titles),
        "rare_disease": question.rare_disease,
    }


def _gold(line: Mapping[str, Any]) -> GoldQuestion:
    gold = line["gold"]
    return GoldQuestion(
        id=scalar_text(line["QIDX"], "QIDX").strip(),  # 7 and "7" are one id
        text=line["Question"],
        answer=gold["answer"],
        synonyms=tuple(gold.get("synonyms", ())),
        answer_type=AnswerType(gold["answer_type"]) if gold.get("answer_type") else None,
        strategy=Strategy(gold["strategy"]) if gold.get("strategy") else None,
        hops=gold.get("hops", 0),
        supporting_titles=tuple(gold.get("supporting_titles", ())),
        rare_disease=gold.get("rare_disease"),
    )


def _measured(answer: str | None, gold: GoldQuestion) -> dict[str, Any]:
    try:
        return measures(answer, gold)
    except Exception as error:  # noqa: BLE001  (a wrong metric must not look like a wrong answer, nor hide the run)
        from medhop_dspy.lm.failures import describe

        unscored = dict.fromkeys(("em", "em_strict", "em_official", "f1"))
        return unscored | {"failed_in": "metric", "error": describe(error)}


def _passage(fields: Mapping[str, Any]) -> Passage:
    return Passage(doc_id=fields["id"].rpartition("#")[0], **fields)


_READERS: Final[dict[str, Any]] = {
    "hops": lambda hops: tuple(Hop(**hop) for hop in hops),
    "evidence": lambda passages: tuple(map(_passage, passages)),
    "usage": lambda usage: Usage(**usage),
    "trace": Trace.from_dict,
    "recall": lambda recall: {int(k): hit for k, hit in recall.items()},
}
_NAMES: Final = frozenset(each.name for each in fields(Result))
_PLAIN: Final = _NAMES - _READERS.keys() - {"gold", "key", "extra"}
_KNOWN: Final = (_NAMES | {"QIDX", "Question"}) - {"extra"}


def encode(line: Mapping[str, Any]) -> bytes:
    """``line`` as UTF-8 with its newline.

    Raises:
        TypeError, ValueError: it holds what JSON cannot.
    """
    try:
        return json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, in a model's reply
        return json.dumps(line, allow_nan=False).encode() + b"\n"


def read_results(folder: Path | str) -> list[Result]:
    """The results of a run, each question once with its last line, in the order of their first lines.

    A last line that a crash has cut is left out. Nothing is changed, so that a run under way can be read.

    Raises:
        InputError: there is no such run, or a line is not a result; the message names the line.
    """
    path = Path(folder) / RESULTS
    with file_errors(path):
        data = path.read_bytes()
    return list(_latest(data[: _whole(data)], path).values())


class ResultsFile:
    """``results.jsonl``, open for the one writer that a run has."""

    def __init__(self, path: Path) -> None:
        """Open or make the file, and mend its end: a cut last line goes, a missing last newline comes.

        Raises:
            InputError: a line other than the last is not a result, or the file cannot be opened.
            DiskFullError: no space is left.
        """
        self._path = path
        with file_errors(path):
            self._file = path.open("ab", buffering=0)
            data = path.read_bytes()
        try:
            whole = _whole(data)
            self.results = _latest(data[:whole], path)
            """By id, the last line of each question."""
            self._mend(data, whole)
        except BaseException:
            self.close()
            raise

    def append(self, line: Mapping[str, Any]) -> Result:
        """Write ``line`` and wait until it is on the disk.

        Raises:
            DiskFullError: no space is left; no part of the line stays.
            InputError: the file cannot be written.
        """
        result = Result.from_line(line)
        self._write(encode(line))
        self.results[result.id] = result
        return result

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _mend(self, data: bytes, whole: int) -> None:
        if whole < len(data):
            _log.warning(
                "%s: the last line was cut by a crash; its %d bytes are dropped", self._path, len(data) - whole
            )
            with file_errors(self._path):
                os.ftruncate(self._file.fileno(), whole)
        if whole and data[whole - 1 : whole] != b"\n":
            self._write(b"\n")

    def _write(self, data: bytes) -> None:
        with file_errors(self._path):
            size = os.fstat(self._file.fileno()).st_size
            try:
                while data:
                    data = data[self._file.write(data) :]
                os.fsync(self._file.fileno())
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._file.fileno(), size)
                raise


def _whole(data: bytes) -> int:
    """How many bytes are left without a last line that is cut, and without the zeros that a power failure leaves."""
    end = len(data.rstrip(b"\0 \t\r\n"))
    start = data.rfind(b"\n", 0, end) + 1
    try:
        json.loads(data[start:end] or b"{}")
    except (ValueError, RecursionError):
        return start
    return end if b"\0" in data[end:] else len(data)


def _latest(data: bytes, path: Path) -> dict[str, Result]:
    results: dict[str, Result] = {}
    for number, piece in enumerate(data.split(b"\n"), start=1):
        if not piece.strip():
            continue
        try:
            result = Result.from_line(json.loads(piece))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(
                f"{path}, line {number}: not a result: {reason}",
                hint="Mend or remove the line; a question without a line is asked again.",
            ) from error
        results[result.id] = result
    return results


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn the system's errors about a file of a run into ours.

    Raises:
        DiskFullError: no space is left.
        InputError: everything else.
    """
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(
                f"no space left while writing {path}",
                hint="Free some space and run the same command again; it goes on where it stopped.",
            ) from error
        raise InputError(
            f"cannot read or write {path}: {error.strerror}", hint="Give the folder of a run, or a new one."
        ) from error
