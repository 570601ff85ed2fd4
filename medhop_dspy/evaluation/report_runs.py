"""The runs that a report is on, read from their folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.results import file_errors, read_results
from medhop_dspy.evaluation.run_folder import MANIFEST
from medhop_dspy.evaluation.summary import Summary, last_summary, summarise

if TYPE_CHECKING:
    from medhop_dspy.evaluation.results import Result


@dataclass(frozen=True, slots=True)
class Run:
    """One run as a report shows it.

    Attributes:
        name: As much of its folder's path as tells it from the others.
        results: At least one, each question once.
        summary: Of these results.
        program: Name of its program.
        model: Name of the language model that answered.
        preset: What its settings started from.
        settings_digest: Tells settings apart, whatever they are named.
        index_digest: Tells indexes apart; empty where the run does not say.
        started: When, in UTC.
        data_name: Name of the question file; empty where the run does not say.
    """

    name: str
    results: tuple[Result, ...]
    summary: Summary
    program: str
    model: str
    preset: str
    settings_digest: str
    index_digest: str
    started: str
    data_name: str

    @property
    def data(self) -> str:
        """The question file, and how many questions of it have a line."""
        return f"{self.data_name or 'no file'}, n = {self.summary.n}"


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """The runs in these folders, each named by as much of its path as tells it from the others.

    Raises:
        InputError: there is none, one is named twice, is no run, or has no line.
    """
    places = [folder.resolve() for folder in folders]
    if not places or len(set(places)) < len(places):
        raise InputError(f"{len(places)} runs, {len(set(places))} different ones", hint="Name each run once.")
    length = 1
    while len({place.parts[-length:] for place in places}) < len(places):
        length += 1
    return [_read_run(place, "/".join(place.parts[-length:])) for place in places]


def _read_run(folder: Path, name: str) -> Run:
    results = read_results(folder)
    if not results:
        raise InputError(f"{folder} holds no results", hint="Run the questions first.")
    with file_errors(folder / MANIFEST):
        text = (folder / MANIFEST).read_bytes()
    try:
        manifest = json.loads(text)
        facts = _facts(manifest)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{folder / MANIFEST} is no manifest of a run: {error!r}", hint="Name the folder of a run."
        ) from error
    questions, seconds = last_summary(folder)
    summary = summarise(results, manifest, pending=max(0, questions - len(results)), wall_seconds=seconds)
    return Run(name, tuple(results), summary, **facts)


def _facts(manifest: Mapping[str, Any]) -> dict[str, str]:
    return {
        "program": str(manifest["program"]["name"]),
        "model": str(manifest["model"]["name"]),
        "preset": str(manifest["settings"]["preset"]),
        "settings_digest": str(manifest["settings_digest"]),
        "index_digest": str(manifest["index_digest"] or ""),
        "started": str(manifest["started"]),
        "data_name": str(manifest["data"]["name"]) if manifest["data"] else "",
    }
