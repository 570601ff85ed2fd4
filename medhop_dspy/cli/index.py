"""``medhop index``: build, extend and check the vector index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medhop_dspy.cli.options import Override, Preset, SettingsFile, load_settings

if TYPE_CHECKING:
    from medhop_dspy.retrieval.corpus import ReadReport
    from medhop_dspy.retrieval.index import Index
    from medhop_dspy.retrieval.sync import UpdateReport
    from medhop_dspy.settings import Settings

app = typer.Typer(no_args_is_help=True, help="The vector index: build, add, check, info.")
Corpus = Annotated[
    Path, typer.Argument(help="File or folder: JSONL, CSV, text files or a Wikipedia dump; see the README.")
]
_SHOWN_PROBLEMS = 20


@app.command()
def build(corpus: Corpus, preset: Preset = None, settings_file: SettingsFile = None, override: Override = None) -> None:
    """Make the index hold exactly this corpus; what it holds already is not embedded again."""
    from medhop_dspy.retrieval.corpus import ReadReport
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.index import Index

    settings = load_settings(preset, settings_file, override)
    read = ReadReport()
    with _progress("building the index") as progress:
        embedder = Embedder.from_settings(settings)
        index, changes = Index.build(settings.index_location, corpus, embedder, settings, progress, read)
    with index:
        _summarise(index, read, changes)


@app.command()
def add(corpus: Corpus, preset: Preset = None, settings_file: SettingsFile = None, override: Override = None) -> None:
    """Add documents to the index, and replace those that changed."""
    from medhop_dspy.retrieval.corpus import ReadReport, read_corpus

    settings = load_settings(preset, settings_file, override)
    read = ReadReport()
    with _opened(settings) as index:
        with _progress("adding documents") as progress:
            changes = index.add(read_corpus(corpus, read), progress)
        _summarise(index, read, changes)


@app.command()
def check(
    k: Annotated[int, typer.Option(min=1, help="Neighbours per query.")] = 90,
    sample: Annotated[int, typer.Option(min=1, help="Stored vectors to search with.")] = 100,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Measure recall@k of approximate search (hnsw) against exact search on this index."""
    with _opened(load_settings(preset, settings_file, override)) as index:
        recall = index.check_recall(k, sample)
        typer.echo(f"recall@{k} of hnsw against exact search, {sample} queries, {index.count:,} passages: {recall:.4f}")


@app.command()
def info(preset: Preset = None, settings_file: SettingsFile = None, override: Override = None) -> None:
    """Show what the index is made of, also where it is not complete; no model and no vector is read."""
    from medhop_dspy.errors import StoreError
    from medhop_dspy.retrieval.location import parse_location
    from medhop_dspy.retrieval.store import find_manifest

    settings = load_settings(preset, settings_file, override)
    place = parse_location(settings.index_location)
    manifest = find_manifest(place)
    if manifest is None:
        raise StoreError(f"there is no index in {place}", hint="Build one with `medhop index build`.")
    typer.echo(f"location  {place}\nsearch    {settings.index_search}\ndigest    {manifest.digest}")
    if manifest.state != "complete":
        typer.echo(f"state     {manifest.state}, not complete")
    typer.echo(manifest.to_json())


@contextmanager
def _opened(settings: Settings) -> Iterator[Index]:
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.index import Index

    with Index.open(settings.index_location, Embedder.from_settings(settings), settings) as index:
        yield index


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda documents, chunks: status.update(
            f"{what}: {documents:,} documents read, {chunks:,} chunks embedded"
        )


def _summarise(index: Index, read: ReadReport, changes: UpdateReport) -> None:
    typer.echo(f"{index.count:,} passages at {index.info().location}")
    typer.echo(
        f"documents: {changes.added} added, {changes.replaced} replaced, {changes.unchanged} unchanged, "
        f"{changes.deleted} deleted"
    )
    left_out = f"{read.empty} empty, {read.redirects} redirects, {read.disambiguations} disambiguation pages"
    typer.echo(f"left out: {left_out}, {len(read.problems)} unreadable")
    for problem in read.problems[:_SHOWN_PROBLEMS]:
        typer.echo(f"  {problem.source}:{problem.number}: {problem.reason}", err=True)
    if len(read.problems) > _SHOWN_PROBLEMS:
        typer.echo(f"  and {len(read.problems) - _SHOWN_PROBLEMS} more", err=True)
    if changes.truncated:
        typer.echo(f"{changes.truncated} chunks are longer than the embedding model reads", err=True)
