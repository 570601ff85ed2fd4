"""The runs that a report is on, read from their folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.choice_summary import ChoiceSummary, summarise_choices
from medhop_dspy.evaluation.outcomes import ChoiceResult, Result
from medhop_dspy.evaluation.results import R, file_errors, read_any_results
from medhop_dspy.evaluation.run_folder import MANIFEST
from medhop_dspy.evaluation.summary import Summary, summarise
from medhop_dspy.evaluation.tally import Tally, last_summary

S = TypeVar("S", bound=Tally)


@dataclass(frozen=True, slots=True)
class Run(Generic[R, S]):
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
        data_digest: Tells question files apart; empty where the run does not say.
        retriever: The setting ``retriever``; ``dense`` where the run knew no other.
        rounds: The setting ``rounds``; None where the run does not say.
    """

    name: str
    results: tuple[R, ...]
    summary: S
    program: str
    model: str
    preset: str
    settings_digest: str
    index_digest: str
    started: str
    data_name: str
    data_digest: str
    retriever: str
    rounds: int | None

    @property
    def data(self) -> str:
        """The question file, and how many questions of it have a line."""
        return f"{self.data_name or 'no file'}, n = {self.summary.n}"

    @property
    def measure(self) -> str:
        """What its share of right answers is called."""
        return self.results[0].measure


class OpenRun(Run[Result, Summary]):
    """A run of open questions."""

    __slots__ = ()


class ChoiceRun(Run[ChoiceResult, ChoiceSummary]):
    """A run of multiple-choice questions."""

    __slots__ = ()


AnyRun = OpenRun | ChoiceRun


def read_runs(folders: Sequence[Path]) -> list[AnyRun]:
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


def _read_run(folder: Path, name: str) -> AnyRun:
    results = read_any_results(folder)
    if not results:
        raise InputError(f"{folder} holds no results", hint="Run the questions first.")
    with file_errors(folder / MANIFEST):
        text = (folder / MANIFEST).read_bytes()
    try:
        manifest = json.loads(text)
        facts = _facts(manifest)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{folder / MANIFEST} is no manifest of a run: {error!r}", hint="Name the folder of a run."
        ) from error
    questions, seconds = last_summary(folder)
    pending = max(0, questions - len(results))
    choices = tuple(result for result in results if isinstance(result, ChoiceResult))
    if choices:
        summary = summarise_choices(choices, manifest, pending=pending, wall_seconds=seconds)
        return ChoiceRun(name, choices, summary, **facts)
    opened = tuple(result for result in results if isinstance(result, Result))
    return OpenRun(name, opened, summarise(opened, manifest, pending=pending, wall_seconds=seconds), **facts)


def _facts(manifest: Mapping[str, Any]) -> dict[str, Any]:
    settings, data = manifest["settings"], manifest["data"] or {}
    return {
        "program": str(manifest["program"]["name"]),
        "model": str(manifest["model"]["name"]),
        "preset": str(settings["preset"]),
        "settings_digest": str(manifest["settings_digest"]),
        "index_digest": str(manifest["index_digest"] or ""),
        "started": str(manifest["started"]),
        "data_name": str(data.get("name", "")),
        "data_digest": str(data.get("sha256", "")),
        "retriever": str(settings.get("retriever", "dense")),
        "rounds": int(settings["rounds"]) if "rounds" in settings else None,
    }
