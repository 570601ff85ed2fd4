"""``medhop graph``: build, extend, look into and train on the knowledge graph."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from medhop_dspy.cli.options import Override, Preset, SettingsFile, load_settings

if TYPE_CHECKING:
    from medhop_dspy.cli.stages import Stages
    from medhop_dspy.graph.build import BuildReport
    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.graph.records import Extractor
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.index import Index
    from medhop_dspy.settings import Settings

app = typer.Typer(no_args_is_help=True, help="The knowledge graph: build, add, info, show, train.")
IndexPlace = Annotated[str | None, typer.Option("--index", help="Vector index; default: the setting's.")]
GraphFolder = Annotated[Path | None, typer.Option("--graph", help="Folder of the graph; default: the setting's.")]
ExtractorKind = Annotated[
    Literal["dictionary", "model"],
    typer.Option(help="dictionary: names out of titles, texts and Orphanet, in minutes. model: the language model."),
]
_MANY = 2**31 - 1  # more passages than any index holds
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for scripts.")]


@app.command()
def build(
    index: IndexPlace = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the graph; default: the setting's.")] = None,
    extractor: ExtractorKind = "dictionary",
    limit: Annotated[
        int | None, typer.Option(min=1, max=_MANY, help="Only the first passages, in the order of their ids.")
    ] = None,
    synonyms: Annotated[float | None, typer.Option(help="Cosine from which two names are synonyms.")] = None,
    neighbours: Annotated[int | None, typer.Option(min=0, help="Similar passages that a passage is linked to.")] = None,
    similarity: Annotated[float | None, typer.Option(help="Cosine from which two passages are similar.")] = None,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Make the graph hold what the passages of the vector index say.

    A build that was stopped goes on where it was. What an extractor has read before is not read again.
    """
    from medhop_dspy.graph import build as building
    from medhop_dspy.graph.manifest import GraphRecipe

    given = {"synonym_floor": synonyms, "neighbours": neighbours, "neighbour_floor": similarity, "limit": limit}
    recipe = GraphRecipe(**_given(given))
    settings = _settings(preset, settings_file, override, index, out)
    with _opened(settings) as (opened, embedder), _extractor(settings, extractor, opened, limit) as (reader, stages):
        graph, report = building.build(
            settings.graph_folder, opened, embedder, reader, recipe, workers=settings.slots, progress=stages.show
        )
    _report(settings, graph, report, stages)


@app.command()
def add(
    index: IndexPlace = None,
    folder: GraphFolder = None,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Add the documents that the vector index has gained; the others keep their entities and triples."""
    from medhop_dspy.graph import build as building
    from medhop_dspy.graph.index import complete_manifest

    settings = _settings(preset, settings_file, override, index, folder)
    about = complete_manifest(settings.graph_folder)
    with (
        _opened(settings) as (opened, embedder),
        _extractor(settings, about.source, opened, about.recipe.limit) as (reader, stages),
    ):
        graph, report = building.add(
            settings.graph_folder, opened, embedder, reader, workers=settings.slots, progress=stages.show
        )
    _report(settings, graph, report, stages)


@app.command()
def info(
    folder: GraphFolder = None,
    hubs: Annotated[int, typer.Option(min=0, help="Entities with most edges to name.")] = 10,
    as_json: AsJson = False,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Show what the graph is made of: counts, degrees, connected parts, hubs."""
    from dataclasses import asdict

    from medhop_dspy.cli.graph_text import summary_lines
    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.graph.show import describe

    place = _settings(preset, settings_file, override, None, folder).graph_folder
    graph = GraphIndex.open(place)
    summary = describe(graph, hubs)
    if as_json:
        typer.echo(json.dumps({"folder": str(place), "digest": graph.digest, **asdict(summary)}))
        return
    typer.echo(f"folder      {place}\ndigest      {graph.digest}")
    typer.echo("\n".join(summary_lines(summary)))


@app.command()
def show(
    entity: Annotated[str, typer.Argument(help="Name of an entity, in any spelling.")],
    hops: Annotated[int, typer.Option(min=1, help="How far to go.")] = 1,
    limit: Annotated[int, typer.Option(min=1, help="Edges to show, the nearest first.")] = 60,
    picture: Annotated[Path | None, typer.Option(help="SVG to write: the same as a drawing.")] = None,
    folder: GraphFolder = None,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Show what lies around an entity: relations, neighbours, and the documents that say so.

    Not a medical device: what was extracted can be wrong.
    """
    from medhop_dspy.cli.graph_text import plain, some, step_line
    from medhop_dspy.evaluation.exports import write_file
    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.graph.picture import neighbourhood_svg
    from medhop_dspy.graph.show import find, mentioning, neighbourhood

    graph = GraphIndex.open(_settings(preset, settings_file, override, None, folder).graph_folder)
    found = find(graph, entity)
    for start in found:
        steps = list(neighbourhood(graph, start, hops))
        titles = mentioning(graph, start)
        typer.echo(f"{plain(graph.label(start))}: {len(steps):,} edges, in {len(titles):,} documents{some(titles)}")
        typer.echo("\n".join(step_line(graph, start, step) for step in steps[:limit]), nl=bool(steps))
        if len(steps) > limit:
            typer.echo(f"{len(steps) - limit:,} more edges not shown (--limit)", err=True)
        if picture and start == found[0]:
            write_file(picture, neighbourhood_svg(graph, start, steps[:limit]).encode())
    if picture and len(found) > 1:
        typer.echo(f"{picture} shows {plain(graph.label(found[0]))}", err=True)


@app.command()
def train(
    questions: Annotated[
        Path | None,
        typer.Option(help="JSONL with supporting_titles, such as data/dev.jsonl; none: the graph's facts alone."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the weights; default: the setting's.")] = None,
    hidden: Annotated[int | None, typer.Option(min=1, max=4096, help="Length of an entity's state.")] = None,
    layers: Annotated[int | None, typer.Option(min=1, max=100, help="Steps of message passing.")] = None,
    fact_epochs: Annotated[int | None, typer.Option(min=0, help="Passes over facts with an end masked.")] = None,
    question_epochs: Annotated[int | None, typer.Option(min=0, help="Passes over the questions.")] = None,
    folder: GraphFolder = None,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Train the graph model (graph_scorer gfm) on the graph's facts, then on questions and their articles.

    A training that was stopped goes on after its last whole epoch. Never train on questions that you test with.
    """
    from medhop_dspy.cli.stages import stages
    from medhop_dspy.evaluation.datasets import read_gold
    from medhop_dspy.graph import training
    from medhop_dspy.graph.examples import TrainingOptions
    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.retrieval.embedding import Embedder

    settings = _settings(preset, settings_file, override, None, folder)
    embedder = Embedder.from_settings(settings)
    graph = GraphIndex.open(settings.graph_folder, embedder=embedder)
    rows = read_gold(questions) if questions else []
    passages = _passages_by_title(graph)
    pairs = [(row.text, [each for title in row.supporting_titles for each in passages[title]]) for row in rows]
    given = {
        "hidden": hidden,
        "layers": layers,
        "completion_epochs": fact_epochs,
        "question_epochs": question_epochs,
    }
    options = TrainingOptions(link_floor=settings.link_floor, seed=settings.seed, **_given(given))
    place = out or settings.gfm_folder
    with stages() as shown:
        result = training.train(
            graph, place, embedder, pairs, options, lambda _, done, total: shown.show("training", done, total)
        )
    best = result.best
    if rows and not result.questions:
        typer.echo("no question has a name and a passage in this graph; only its facts were trained on", err=True)
    typer.echo(f"weights at {place}")
    typer.echo(f"{result.facts:,} facts, {result.questions:,} questions, {result.left_out:,} left out")
    typer.echo(f"best epoch: {best.number} on {best.stage}, loss on what was held back {best.validation_loss:.4f}")


def _passages_by_title(graph: GraphIndex) -> defaultdict[str, list[str]]:
    """Ids of the passages of the documents with each title."""
    passages: defaultdict[str, list[str]] = defaultdict(list)
    for identifier, title in zip(graph.passage_ids, graph.passage_titles, strict=True):
        passages[title].append(identifier)
    return passages


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that somebody gave; the others have the library's defaults."""
    return {name: value for name, value in options.items() if value is not None}


def _settings(
    preset: str | None, file: Path | None, override: list[str] | None, index: str | None, graph: Path | None
) -> Settings:
    settings = load_settings(preset, file, override)
    places = {"index": index, "graph": graph}
    return settings.replace(**{name: place for name, place in places.items() if place})


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[Index, Embedder]]:
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.index import Index

    embedder = Embedder.from_settings(settings)
    with Index.open(settings.index_location, embedder, settings) as index:
        yield index, embedder


@contextmanager
def _extractor(settings: Settings, kind: str, index: Index, limit: int | None) -> Iterator[tuple[Extractor, Stages]]:
    """What reads the passages, and the progress of it; a model server runs only for the model."""
    from medhop_dspy.cli.stages import stages

    if kind == "dictionary":
        with stages() as shown:
            yield _dictionary(settings, index, limit), shown
        return
    from medhop_dspy.lm.connect import quiet_dspy

    quiet_dspy()
    from medhop_dspy.graph.extraction import ModelExtractor
    from medhop_dspy.lm.engine import record_calls
    from medhop_dspy.lm.serve import model_server

    with model_server(settings) as served, record_calls() as calls, stages(calls) as shown:
        yield ModelExtractor.connect(served), shown


def _dictionary(settings: Settings, index: Index, limit: int | None) -> Extractor:
    from itertools import islice

    from medhop_dspy.graph.dictionary import DictionaryExtractor
    from medhop_dspy.runtime import open_orphanet

    return DictionaryExtractor.for_corpus(islice(index.all_passages(), limit), open_orphanet(settings))


def _report(settings: Settings, graph: GraphIndex, report: BuildReport, stages: Stages) -> None:
    if report.changed:
        typer.echo(f"made anew, as the graph had {'; '.join(report.changed)}", err=True)
    if not report.written and not report.failed:
        typer.echo("nothing to do: the graph is of this index", err=True)
    if report.failed:
        typer.echo(f"{report.failed:,} passages failed; run the command again to try them again", err=True)
    if cost := str(stages.cost):
        typer.echo(cost, err=True)
    typer.echo(f"{len(graph.names):,} entities, {len(graph.edges):,} edges at {settings.graph_folder}")
    typer.echo(
        f"passages: {report.extracted:,} read, {report.reused:,} read before, {report.failed:,} failed; "
        f"{report.embedded:,} names embedded, {report.rejected:,} malformed entities and triples left out"
    )
