"""The folder of a run: one writer at a time, and a manifest that keeps two different runs from mixing."""

from __future__ import annotations

import datetime
import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from medhop_dspy.errors import InputError, ProgramError, SettingsError
from medhop_dspy.evaluation.choices import files_of
from medhop_dspy.evaluation.outcomes import Outcome
from medhop_dspy.evaluation.records import ChoiceQuestion
from medhop_dspy.evaluation.results import RESULTS, R, ResultsFile, file_errors
from medhop_dspy.retrieval.disk import write_atomically

if TYPE_CHECKING:
    from medhop_dspy.evaluation.records import Question
    from medhop_dspy.pipelines.program import Program
    from medhop_dspy.settings import Settings

FORMAT: Final = 1
MANIFEST: Final = "run.json"
_LOCK: Final = ".lock"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """The language model that answers: its name, the fingerprint of what is served, and requests at once.

    ``fingerprint`` is empty and ``slots`` 0 where they are unknown.
    """

    name: str
    fingerprint: str = ""
    slots: int = 0


@dataclass(frozen=True, slots=True)
class DataFile:
    """A question file: its name and the hex SHA-256 of its bytes; of a folder, that of the files that are read."""

    name: str
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        """The file or folder at ``path``.

        Raises:
            InputError: it cannot be read.
        """
        with file_errors(path):
            digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files_of(path)}
        return cls(path.name or path.resolve().name, _digest(digests) if path.is_dir() else digests[path.name])


def served_model(settings: Settings) -> Served:
    """What answers in the present ``dspy.context``; the model server is asked what it serves.

    Raises:
        SettingsError: there is no language model.
        ServerUnavailableError: the server does not answer.
    """
    import dspy

    from medhop_dspy.lm.connect import PROBE_TIMEOUT, probe
    from medhop_dspy.lm.engine import RecordingEngine

    lm = dspy.settings.lm
    if lm is None:
        raise SettingsError(
            "no language model is loaded", hint="Evaluate inside medhop_dspy.session() or dspy.context(lm=...)."
        )
    engine = getattr(lm, "engine", None)
    if not isinstance(engine, RecordingEngine):
        return Served(lm.model)
    key = settings.api_key.get_secret_value() if settings.api_key else None
    info = probe(engine.base_url, key, min(settings.timeout, PROBE_TIMEOUT), model=engine.model)
    return Served(info.model, info.fingerprint, info.slots)


def describe_run(program: Program, served: Served, data: DataFile | None) -> dict[str, Any]:
    """The manifest of a run that begins now.

    Raises:
        ProgramError: a demo of the program holds something JSON cannot.
    """
    from medhop_dspy import saving

    about = saving.manifest(program)
    demos = {
        name: {part: predictor[part] for part in ("signature", "demos")}
        for name, predictor in program.dump_state().items()
    }
    try:
        state = json.dumps(demos, sort_keys=True)
    except TypeError as error:
        raise ProgramError(f"the program holds a value that JSON cannot: {error}") from error
    identity = {part: about[part] for part in ("program", "adapter", "predictors")} | {"state": state}
    return {
        "format": FORMAT,
        "program": {"name": about["program"], "digest": _digest(identity)},
        "settings": about["settings"],
        "settings_digest": about["settings_digest"],
        "index_digest": about["index_digest"],
        "model": {"name": served.name, "fingerprint": served.fingerprint},
        "data": asdict(data) if data else None,
        "versions": about["versions"],
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def question_key(about: Mapping[str, Any], question: Question) -> str:
    """Hex SHA-256 of all that an answer depends on: id, question, options, settings, program, index, model served."""
    run = (about["settings_digest"], about["program"], about["index_digest"], about["model"])
    options = [question.options] if isinstance(question, ChoiceQuestion) else []
    return _digest([question.id, question.text, *options, *run])


@contextmanager
def open_run(
    folder: Path, about: Mapping[str, Any], kind: type[R]
) -> Iterator[tuple[ResultsFile[R], Mapping[str, Any]]]:
    """Results and manifest of the run in ``folder``, for its only writer; a new manifest is written first.

    Raises:
        InputError: another process writes to it, it holds results without a manifest or of another kind, or a file is
            not of a run.
        ProgramError: it is a run of another program, settings, index, model or question file, each named.
        DiskFullError: no space is left.
    """
    import filelock

    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / _LOCK, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except (filelock.Timeout, RuntimeError):  # RuntimeError: held by this very thread
        raise InputError(
            f"another run is writing to {folder}", hint="Wait until it has ended, or choose another folder."
        ) from None
    except OSError:
        with file_errors(folder / _LOCK):
            raise
    try:
        saved = _manifest(folder, about)
        with closing(ResultsFile(folder / RESULTS, kind)) as results:
            yield results, saved
    finally:
        lock.release()


def check_done(results: Mapping[str, Outcome[Any]], questions: Iterable[Question], about: Mapping[str, Any]) -> None:
    """Refuse to go on where a finished question was asked in another way.

    Raises:
        ProgramError: its text, its options, or something else in its key, has changed.
    """
    for question in questions:
        done = results.get(question.id)
        if done is None or not done.answered or done.key == question_key(about, question):
            continue
        if done.question != question.text:
            what = f"question: {done.question!r}, now {question.text!r}"
        elif isinstance(question, ChoiceQuestion) and done.gold.options != question.options:
            what = f"options: {done.gold.options!r}, now {question.options!r}"
        else:
            what = "its line is of another program, settings, index or model"
        raise ProgramError(
            f"question {question.id} was asked in another way before: {what}", hint="Choose another folder."
        )


def _manifest(folder: Path, about: Mapping[str, Any]) -> Mapping[str, Any]:
    """What ``run.json`` says, which is ``about`` where the run is new; see :func:`open_run` for errors."""
    path = folder / MANIFEST
    if not path.exists():
        if (folder / RESULTS).exists():
            raise InputError(f"{folder} has {RESULTS} but no {MANIFEST}", hint="Choose another folder.")
        with file_errors(path):
            write_json(path, about)
        return about
    with file_errors(path):
        text = path.read_bytes()
    try:
        saved: dict[str, Any] = json.loads(text)
        problems = _differences(saved, about)
        versions = {n: v for n, v in saved["versions"].items() if about["versions"].get(n, v) != v}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is no manifest of a run: {error!r}", hint="Choose another folder.") from error
    if problems:
        raise ProgramError(
            f"{folder} is another run: {'; '.join(problems)}", hint="Choose another folder, or mend the options."
        )
    if versions:
        _log.warning("%s was begun with other versions: %s", folder, versions)
    return saved


def _differences(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    if saved["format"] != FORMAT:
        return [f"format {saved['format']}, this version writes {FORMAT}"]
    before, after = _identity(saved), _identity(now)
    return [f"{what}: {before.get(what)!r}, now {after[what]!r}" for what in after if before.get(what) != after[what]]


def _identity(about: Mapping[str, Any]) -> dict[str, Any]:
    """What makes a run that run, by names for people."""
    return {
        "program": about["program"]["name"],
        "digest of the program": about["program"]["digest"],
        "model": about["model"]["name"],
        "fingerprint of the model server": about["model"]["fingerprint"],
        "index": about["index_digest"],
        "question file": (about["data"] or {}).get("sha256"),
        **{f"setting {name}": value for name, value in about["settings"].items() if name != "preset"},
        "digest of the settings": about["settings_digest"],
    }


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write ``value`` to ``path`` in one step.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode()))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
