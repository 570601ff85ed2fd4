import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from medhop_dspy.errors import GraphError, InputError, SettingsError
from medhop_dspy.graph.linking import EntityLinker
from medhop_dspy.graph.retriever import GraphRetriever
from medhop_dspy.graph.scoring import PageRankScorer
from medhop_dspy.retrieval.index import Index
from medhop_dspy.retrieval.rerank import NoReranker
from medhop_dspy.retrieval.retriever import Retriever
from medhop_dspy.runtime import make_retriever
from tests.graph.hybrid_world import HybridWorld
from tests.graph.small_world import documents, index_of

CAUSE = "What does FBN1 cause?"
DRUG = "Which drug treats Marfan syndrome?"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = HybridWorld(tmp_path_factory.mktemp("hybrid"))
    yield made
    made.close()


def graph_order(world, question, entities, top=20, scorer=None):
    """S_graph, computed for one question without the retriever: (id, score), best first."""
    scorer = scorer or PageRankScorer(world.graph, 0.5)
    seeds = np.zeros((1, len(world.graph.names)))
    seeds[0, [world.graph.names.index(name) for name in entities]] = 1
    (scores,) = scorer.passages(scorer.scores([question], seeds), top)
    found = [(i, s) for i, s in zip(world.graph.passage_ids, scores, strict=True) if s > 0]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def dense_order(world, question, k):
    return [p.id for p in world.index.search(world.encoder.embed_queries([question]), k)[0]]


def test_graph_mode_is_the_graphs_ranking_alone(world):
    found = world.retriever(retriever="graph").find([CAUSE], 5)
    wanted = graph_order(world, CAUSE, ["FBN1"])[:5]
    assert [(p.id, p.score) for p in found.passages] == wanted
    assert (found.entities, found.graph_used) == (("FBN1",), True)


def test_the_graph_reaches_passages_that_do_not_name_the_entity(world):
    found = world.retriever(retriever="graph").search([CAUSE], 5)
    assert "FBN1" not in next(p.text for p in found if p.id == "marfan#0")


def test_hybrid_mode_is_equation_5(world):
    retriever = world.retriever()
    by_graph, by_vector = [i for i, _ in graph_order(world, DRUG, ["Marfan syndrome"])[:5]], dense_order(world, DRUG, 5)
    scores = {
        i: sum(1 / (60 + ranking.index(i) + 1) for ranking in (by_graph, by_vector) if i in ranking)
        for i in {*by_graph, *by_vector}
    }
    wanted = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:5]
    found = retriever.search([DRUG], 5)
    assert [p.id for p in found] == [i for i, _ in wanted]
    assert [p.score for p in found] == pytest.approx([s for _, s in wanted])
    assert set(by_graph) != set(by_vector), "both lists must matter here"


def test_top_entities_bounds_who_scores_passages_with_the_gfm(world):
    few, many = (
        world.retriever(retriever="graph", graph_scorer="gfm", top_entities=top).search([CAUSE], 5) for top in (1, 20)
    )
    scorer = world.scorer(world.settings.replace(graph_scorer="gfm"))
    assert [(p.id, p.score) for p in few] == graph_order(world, CAUSE, ["FBN1"], 1, scorer)[:5]
    assert len(few) < len(many)
    walks = [world.retriever(retriever="graph", top_entities=top).search([CAUSE], 5) for top in (1, 20)]
    assert walks[0] == walks[1]


def test_equal_scores_are_ordered_by_id(world):
    found = world.retriever(retriever="graph", candidates=2).search(["aorta"], 10)
    ranked = graph_order(world, "aorta", ["aorta"])
    assert [p.id for p in found] == [i for i, _ in ranked[:2]]


@pytest.mark.parametrize("mode", ["graph", "hybrid"])
@pytest.mark.parametrize("query", ["What is it?", "zzqx protein"])
def test_a_query_without_known_entities_is_served_by_vectors_alone_and_says_so(world, mode, query):
    found = world.retriever(retriever=mode).find([query], 5)
    assert (found.graph_used, found.entities) == (False, ())
    assert [p.id for p in found.passages] == dense_order(world, query, 5)


def test_unknown_queries_do_not_get_one_fixed_order(world):
    one, two = (world.retriever().search([query], 5) for query in ("What is it?", "zzqx protein"))
    assert [p.id for p in one] != [p.id for p in two]


@pytest.mark.parametrize(
    ("queries", "k", "message"),
    [
        ([""], 5, "none of the 1 query strings"),
        ([], 5, "none of the 0"),
        (CAUSE, 5, "wanted a list"),
        ([CAUSE], 0, "k must"),
    ],
)
def test_unusable_queries_are_refused(world, queries, k, message):
    with pytest.raises(InputError, match=message):
        world.retriever().search(queries, k)


def test_given_entities_take_the_place_of_those_in_the_question(world):
    retriever = world.retriever(retriever="graph")
    found = retriever.find(["What is it?"], 5, entities=["fbn-1"])
    assert (found.entities, found.graph_used) == (("FBN1",), True)
    assert [p.id for p in found.passages] == [i for i, _ in graph_order(world, "", ["FBN1"])[:5]]
    assert not retriever.find([CAUSE], 5, entities=["zzqx", " "]).graph_used
    assert not retriever.find([CAUSE], 5, entities=[]).graph_used


def test_each_query_string_has_a_path_of_its_own(world):
    """The second links to nothing: its share of the pool comes from the vectors, also in mode graph."""
    found = world.retriever(retriever="graph").find([CAUSE, "zzqx protein"], 6)
    assert found.graph_used
    graph, dense = [i for i, _ in graph_order(world, CAUSE, ["FBN1"])], dense_order(world, "zzqx protein", 5)
    alternating = dict.fromkeys(i for pair in zip(graph, dense, strict=False) for i in pair)
    assert [p.id for p in found.passages] == list(alternating)[:6]


def test_the_pool_is_reranked_as_in_dense_search(world):
    class Reversed:
        def rank(self, query, passages):
            asked.append(query)
            return list(reversed(passages))

    asked = []
    dense = Retriever(world.index, world.encoder, Reversed(), world.settings)
    plain = world.retriever()
    linker = EntityLinker(world.graph, world.encoder, 0.8)
    retriever = GraphRetriever(dense, world.graph, linker, PageRankScorer(world.graph), world.settings)
    pool = [p.id for p in plain.search([DRUG], 20)]
    assert [p.id for p in retriever.search([DRUG], 20, "a drug")] == pool[::-1]
    assert asked == ["a drug"]
    assert [p.id for p in retriever.ranked_by_itself().search([DRUG], 20)] == pool


def test_the_mode_can_be_changed_but_not_to_dense(world):
    retriever = world.retriever()
    assert retriever.in_mode("graph").search([CAUSE], 5) == world.retriever(retriever="graph").search([CAUSE], 5)
    assert retriever.mode == "hybrid"
    with pytest.raises(SettingsError, match="retriever is 'dense'"):
        world.retriever(retriever="dense")
    with pytest.raises(SettingsError, match="retriever is 'vector'"):
        retriever.in_mode("vector")


def test_copies_share_it_and_the_digest_covers_graph_and_scorer(world, tmp_path):
    retriever = world.retriever()
    assert copy.deepcopy(retriever) is retriever
    assert retriever.digest == world.retriever().digest
    assert retriever.index is world.index
    others = {world.retriever(damping=0.7).digest, world.dense().digest, world.retriever(graph_scorer="gfm").digest}
    assert len({retriever.digest, *others}) == 4


def test_neighbours_are_those_of_the_dense_retriever(world):
    around = world.retriever(neighbours_of=1)
    assert around.without_neighbours().search([CAUSE], 3) == world.retriever().search([CAUSE], 3)


@pytest.mark.parametrize("search", ["exact", "hnsw"])
def test_passages_are_read_from_either_kind_of_index(world, search):
    settings = world.settings.replace(index_search=search, retriever="graph")
    with Index.open(world.settings.index, world.encoder, settings) as index:
        dense = Retriever(index, world.encoder, NoReranker(), settings)
        linker = EntityLinker(world.graph, world.encoder, 0.8)
        found = GraphRetriever(dense, world.graph, linker, PageRankScorer(world.graph), settings).search([CAUSE], 5)
    assert found == world.retriever(retriever="graph").search([CAUSE], 5)
    assert len(found) == 5


def test_a_graph_of_another_index_is_found_out(world, tmp_path):
    with index_of(tmp_path, documents("fbn2", "again")) as other:
        dense = Retriever(other, world.encoder, None, world.settings)
        linker = EntityLinker(world.graph, world.encoder, 0.8)
        retriever = GraphRetriever(dense, world.graph, linker, PageRankScorer(world.graph), world.settings)
        with pytest.raises(GraphError, match=r"passage '.+' of the graph is not in the index"):
            retriever.search([CAUSE], 3)
        with pytest.raises(GraphError, match="of the index"):
            GraphRetriever.open(dense, world.encoder, world.settings)


def test_it_opens_what_the_settings_name(world):
    opened = GraphRetriever.open(world.dense(), world.encoder, world.settings)
    assert opened.digest == world.retriever().digest
    assert opened.search([DRUG], 5) == world.retriever().search([DRUG], 5)
    with pytest.raises(GraphError, match="there is no graph"):
        GraphRetriever.open(world.dense(), world.encoder, world.settings.replace(graph=world.settings.home / "none"))


def test_settings_decide_what_is_opened(world):
    parts = (world.index, world.encoder, NoReranker())
    for nothing in (None, "dense"):
        dense = make_retriever(*parts, world.settings.replace(retriever=nothing))
        assert (type(dense), dense.dense, dense.digest) == (Retriever, dense, world.index.digest)
    graph = make_retriever(*parts, world.settings.replace(retriever="graph"))
    assert (type(graph), graph.mode) == (GraphRetriever, "graph")


def test_threads_find_the_same(world):
    retriever, queries = world.retriever(), [CAUSE, DRUG, "What is it?", "TNF-α"] * 5
    wanted = [world.retriever().search([q], 4) for q in queries]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda q: retriever.search([q], 4), queries)) == wanted
