"""The lines of a run, ``results.jsonl``: one JSON object a question, appended, never rewritten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from medhop_dspy.errors import DiskFullError, InputError
from medhop_dspy.evaluation.outcomes import ChoiceResult, Outcome, Result, is_choice
from medhop_dspy.journal import Journal, encode, whole
from medhop_dspy.retrieval.disk import is_disk_full

R = TypeVar("R", bound=Outcome[Any])
RESULTS: Final = "results.jsonl"


def read_results(folder: Path | str) -> list[Result]:
    """The results of a run of open questions, each once with its last line, in the order of their first lines.

    A last line that a crash has cut is left out. Nothing is changed, so that a run under way can be read.

    Raises:
        InputError: there is no such run, a line is not a result, or it is one of a multiple-choice question; the
            message names the line.
    """
    lines, path = _read(folder)
    return list(_latest(lines, path, Result).values())


def read_any_results(folder: Path | str) -> list[Result] | list[ChoiceResult]:
    """The same for a run of either kind, as its first line says."""
    lines, path = _read(folder)
    if _holds_choices(lines):
        return list(_latest(lines, path, ChoiceResult).values())
    return list(_latest(lines, path, Result).values())


def _holds_choices(lines: Sequence[bytes]) -> bool:
    """Whether the first of these lines is of a multiple-choice question; False where there is none."""
    try:
        return is_choice(json.loads(next(filter(None, lines), b"{}")))
    except (AttributeError, TypeError, ValueError, RecursionError):
        return False  # whoever reads the lines says what is wrong with them


def _read(folder: Path | str) -> tuple[list[bytes], Path]:
    path = Path(folder) / RESULTS
    with file_errors(path):
        data = path.read_bytes()
    return data[: whole(data)].split(b"\n"), path


class ResultsFile(Generic[R]):
    """``results.jsonl``, open for the one writer that a run has."""

    def __init__(self, path: Path, kind: type[R]) -> None:
        """Open or make the file, and mend its end: a cut last line goes, a missing last newline comes.

        Raises:
            InputError: a line other than the last is not a result of this kind, or the file cannot be opened.
            DiskFullError: no space is left.
        """
        self._path = path
        self.kind = kind
        """What its lines are."""
        with file_errors(path):
            self._journal = Journal(path, sync=True)
        try:
            self.results = _latest(self._journal.lines, path, kind)
            """By id, the last line of each question."""
            with file_errors(path):
                self._journal.mend()
        except BaseException:
            self.close()
            raise

    def append(self, line: Mapping[str, Any]) -> R:
        """Write ``line`` and wait until it is on the disk.

        Raises:
            DiskFullError: no space is left; no part of the line stays.
            InputError: the file cannot be written.
        """
        result = self.kind.from_line(line)
        with file_errors(self._path):
            self._journal.append(encode(line))
        self.results[result.id] = result
        return result

    def close(self) -> None:
        """Close the file."""
        with file_errors(self._path):
            self._journal.close()


def _latest(lines: Iterable[bytes], path: Path, kind: type[R]) -> dict[str, R]:
    results: dict[str, R] = {}
    for number, piece in enumerate(lines, start=1):
        if not piece.strip():
            continue
        try:
            line = json.loads(piece)
            result = kind.from_line(line) if is_choice(line) is issubclass(kind, ChoiceResult) else None
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(
                f"{path}, line {number}: not a result: {reason}",
                hint="Mend or remove the line; a question without a line is asked again.",
            ) from error
        if result is None:
            kinds = ("a multiple-choice question", "an open question")
            found, wanted = kinds if is_choice(line) else reversed(kinds)
            raise InputError(
                f"{path}, line {number}: a result of {found}, wanted one of {wanted}",
                hint="`medhop report` takes runs of either kind; a run to be written holds one of them.",
            )
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
