"""Programs as JSON files, with a manifest that refuses to load into the wrong place.

A file holds what an optimiser can change (instructions, field descriptions, demos of every predictor) and says what
that was made for: program, fields, adapter, settings, model, index. It never holds a model handle, an address or a
key.
"""

from __future__ import annotations

import datetime
import errno
import importlib.metadata
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.errors import DiskFullError, ProgramError, SettingsError
from medhop_dspy.retrieval.disk import is_disk_full, write_atomically
from medhop_dspy.settings import PLACES, Settings

if TYPE_CHECKING:
    from medhop_dspy.pipelines.program import Program

FORMAT: Final = 1
_PACKAGES: Final = ("medhop-dspy", "dspy", "chromadb", "sentence-transformers")
_log = logging.getLogger(__name__)


def save(program: Program, path: Path | str, *, facts: dict[str, Any] | None = None) -> None:
    """Write ``program`` to ``path`` (``.json``) in one step: the file is whole or not there.

    Args:
        program: What to save; its predictors' language models are left out.
        path: Target, replaced if it exists.
        facts: More entries of the manifest, such as the optimiser and the dev score.

    Raises:
        ProgramError: the suffix is not ``.json``, the file cannot be written, or a demo holds something JSON cannot.
        DiskFullError: no space is left.
    """
    path = _json_path(path)
    state = program.dump_state()
    for predictor in state.values():
        predictor["lm"] = None
    document = {"medhop": {**manifest(program), **(facts or {})}, "state": state}
    try:
        data = f"{json.dumps(document, ensure_ascii=False, indent=2)}\n".encode()
    except (TypeError, ValueError) as error:  # ValueError: half of a surrogate pair, in a model's reply
        raise ProgramError(f"the program holds a value that JSON cannot: {error}") from error
    with _writing(path):
        write_atomically(path, lambda stream: stream.write(data))


def prepare(path: Path | str) -> None:
    """Make the folder of a program that is to be saved to ``path``, so that hours of compiling are not lost to a typo.

    Raises:
        ProgramError: the suffix is not ``.json``, it is a folder, or its folder cannot be made or written.
        DiskFullError: no space is left.
    """
    path = _json_path(path)
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(errno.EACCES, "its folder cannot be written")


def manifest(program: Program) -> dict[str, Any]:
    """What ``program`` is made for."""
    return {
        "format": FORMAT,
        "program": program.name,
        "predictors": _fields(program),
        "adapter": type(program.adapter).__name__,
        "settings": program.settings.model_dump(mode="json", exclude=set(PLACES)),
        "settings_digest": program.settings.digest(),
        "index_digest": getattr(program.retriever, "digest", None),
        "versions": {p: importlib.metadata.version(p) for p in _PACKAGES},
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def read(path: Path | str) -> dict[str, Any]:
    """The whole document of a saved program.

    Raises:
        ProgramError: no such file, not JSON, not one of ours, or of another format.
    """
    path = _json_path(path)
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProgramError(f"cannot read program {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ProgramError(f"program {path} is not JSON: {error}") from error
    about: Any = document.get("medhop") if isinstance(document, dict) else None
    if isinstance(about, dict) and about.get("format", FORMAT) != FORMAT:
        raise ProgramError(f"program {path} has format {about['format']}, this version reads {FORMAT}")
    if not isinstance(about, dict) or not _is_whole(about, document.get("state")):
        raise ProgramError(f"{path} is not a saved medhop program", hint="Save programs with program.save(path).")
    return document


def saved_settings(document: dict[str, Any], file: Path | None = None, **overrides: Any) -> Settings:  # noqa: ANN401
    """The settings that a saved program was made with, at this machine's places.

    Args:
        document: From :func:`read`.
        file: TOML file, of which only the places count.
        **overrides: Win over the saved values; all but places will make :func:`restore` refuse.

    Raises:
        ProgramError: a saved setting is unknown here or out of bounds.
    """
    saved = document["medhop"]["settings"]
    try:
        return Settings.load(saved.get("preset"), file=file).replace(**{**saved, **overrides})
    except SettingsError as error:
        raise ProgramError(f"the saved settings do not fit this version: {error}") from error


def restore(program: Program, document: dict[str, Any]) -> None:
    """Put a saved state into ``program``; either all of it fits and is loaded, or nothing is changed.

    Raises:
        ProgramError: another program, predictor, field, adapter, setting or index, each named.
    """
    about, state = document["medhop"], document["state"]
    problems = [
        *_differences("program", about.get("program"), program.name),
        *_differences("adapter", about.get("adapter"), type(program.adapter).__name__),
        *_predictor_problems(about.get("predictors", {}), state, _fields(program)),
        *_setting_problems(about, program.settings),
    ]
    index = manifest(program)["index_digest"]
    if about.get("index_digest") and index and about["index_digest"] != index:
        problems.append(f"index: saved for {about['index_digest'][:12]}, opened {index[:12]}")
    if problems:
        raise ProgramError(f"the saved program does not fit: {'; '.join(problems)}")
    for name, version in about.get("versions", {}).items():
        if name in _PACKAGES and version != importlib.metadata.version(name):
            _log.info("program saved with %s %s, running %s", name, version, importlib.metadata.version(name))
    program.load_state({name: {**predictor, "lm": None} for name, predictor in state.items()})


def _is_whole(about: dict[str, Any], state: Any) -> bool:  # noqa: ANN401
    """Whether manifest and state are of the form that the rest of this module relies on."""
    dicts = (
        about.get("settings"),
        about.get("versions", {}),
        about.get("compiling", {}),
        about.get("predictors"),
        state,
    )
    return (
        about.get("format") == FORMAT
        and isinstance(about.get("program"), str)
        and isinstance(about.get("index_digest"), str | None)
        and all(isinstance(each, dict) for each in dicts)
        and isinstance(about["settings"].get("preset"), str | None)
        and all(isinstance(fields, dict) for fields in about["predictors"].values())
        and all(isinstance(predictor, dict) and _is_predictor(predictor) for predictor in state.values())
    )


def _is_predictor(state: dict[str, Any]) -> bool:
    """Whether DSPy can load it: it reads the fields by their places, so that a wrong one would pass unseen."""
    demos, signature = state.get("demos"), state.get("signature")
    return (
        isinstance(demos, list)
        and all(isinstance(demo, dict) for demo in demos)
        and isinstance(signature, dict)
        and isinstance(signature.get("instructions"), str)
        and isinstance(signature.get("fields"), list)
        and all(
            isinstance(each, dict) and all(isinstance(each.get(part), str) for part in ("prefix", "description"))
            for each in signature["fields"]
        )
    )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = DiskFullError if is_disk_full(error) else ProgramError
        raise kind(f"cannot write program {path}: {error.strerror}") from error


def _json_path(path: Path | str) -> Path:
    path = Path(path)
    if path.suffix != ".json":
        raise ProgramError(f"a program file ends in .json, not {path.suffix or 'nothing'!r}: {path}")
    return path


def _fields(program: Program) -> dict[str, dict[str, dict[str, str]]]:
    return {
        name: {
            "inputs": _types(predictor.signature.input_fields),
            "outputs": _types(predictor.signature.output_fields),
        }
        for name, predictor in program.named_predictors()
    }


def _types(fields: dict[str, Any]) -> dict[str, str]:
    from dspy.adapters.utils import get_annotation_name

    return {name: get_annotation_name(field.annotation) for name, field in fields.items()}


def _differences(what: str, saved: object, here: object) -> list[str]:
    return [] if saved == here else [f"{what}: saved {saved!r}, here {here!r}"]


def _predictor_problems(saved: dict[str, Any], state: dict[str, Any], here: dict[str, Any]) -> list[str]:
    missing = [n for n in here if n not in saved or n not in state]
    extra = [n for n in {**saved, **state} if n not in here]
    problems = [f"predictor missing in the file: {n}" for n in missing]
    problems += [f"predictor unknown here: {n}" for n in extra]
    for name in here.keys() & saved.keys():
        for side in ("inputs", "outputs"):
            problems += _differences(f"{name}.{side}", saved[name].get(side), here[name][side])
        if name in state:
            wanted = sum(map(len, here[name].values()))
            problems += _differences(f"{name}, number of fields", len(state[name]["signature"]["fields"]), wanted)
    return sorted(problems)


def _setting_problems(about: dict[str, Any], here: Settings) -> list[str]:
    if about.get("settings_digest") == here.digest():
        return []
    saved, now = about.get("settings", {}), here.model_dump(mode="json", exclude=set(PLACES))
    problems = [f"setting {k}: saved {saved.get(k)!r}, here {now[k]!r}" for k in now if saved.get(k) != now[k]]
    return problems or ["setting orphanet: one of the two has tables, the other has none"]
