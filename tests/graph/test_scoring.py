import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from medhop_dspy.errors import ArtefactError, InputError
from medhop_dspy.graph.scoring import GFMScorer, PageRankScorer, make_scorer, specificity
from medhop_dspy.settings import Settings
from tests.retrieval.hashing_encoder import HashingEncoder

from .graphs import empty_graph, gene_world, make_graph, random_graph

QUESTIONS = ["Which gene causes it?", "Where does that gene lie?"]


def gfm_scorer(graph, encoder=None):
    import torch

    from medhop_dspy.graph.gfm import GFM

    with torch.random.fork_rng():
        torch.manual_seed(0)
        return GFMScorer(graph, GFM(32, 8, 2), encoder or HashingEncoder())


SCORERS = pytest.mark.parametrize("scorer_of", [PageRankScorer, gfm_scorer], ids=["pagerank", "gfm"])


def one_hot(graph, *rows):
    seeds = np.zeros((len(rows), len(graph.names)))
    for row, names in zip(seeds, rows, strict=True):
        row[[graph.names.index(name) for name in names]] = 1
    return seeds


def test_specificity_is_one_over_the_number_of_passages():
    graph = make_graph(["a", "b", "c"], [], {"p": ["a", "b"], "q": ["a"]})
    assert specificity(graph).tolist() == [0.5, 1, 0]
    assert specificity(empty_graph(["p"])).tolist() == []


def test_a_rare_seed_outweighs_a_frequent_one():
    facts = [("rare", "causes", "left"), ("frequent", "causes", "right")]
    graph = make_graph(
        ["rare", "frequent", "left", "right"], facts, {"p": ["rare"], "q": ["frequent"], "r": ["frequent"]}
    )
    scores = PageRankScorer(graph).scores(["?"], one_hot(graph, ["rare", "frequent"]))[0]
    # The walker jumps to `rare`, of one passage, twice as often as to `frequent`, of two; from there it goes on to two
    # neighbours, or to three.
    assert scores == pytest.approx([4 / 9, 2 / 9, 1 / 9, 1 / 27])


def test_passages_join_entities_that_no_fact_joins():
    graph = make_graph(["a", "b"], [], {"p": ["a", "b"]})
    scores = PageRankScorer(graph).scores(["?"], one_hot(graph, ["a"]))[0]
    # a = 1/2 + p/4, p = a/2 + b/2, b = p/4 in the long run, with a, b and p summing to 1
    assert scores == pytest.approx([7 / 12, 1 / 12])


@SCORERS
def test_scores_are_shares_and_rows_stand_alone(scorer_of):
    graph = random_graph(1, 15, 30)
    seeds = one_hot(graph, ["entity 1", "entity 7"], ["entity 3"])
    scorer = scorer_of(graph)
    both = scorer.scores(QUESTIONS, seeds)
    assert both.shape == (2, 15)
    assert (both >= 0).all()
    assert (both <= 1).all()
    assert not np.array_equal(both[0], both[1])
    assert np.array_equal(both[:1], scorer.scores(QUESTIONS[:1], seeds[:1]))
    assert np.array_equal(both[::-1], scorer.scores(QUESTIONS[::-1], seeds[::-1]))


@SCORERS
def test_a_question_without_entities_scores_nothing(scorer_of):
    graph = random_graph(2, 10, 20)
    scorer = scorer_of(graph)
    scores = scorer.scores(["What is it?", "zzqx protein"], np.zeros((2, 10)))
    assert not scores.any()
    assert not scorer.passages(scores, 20).any()


@SCORERS
@pytest.mark.parametrize("passages", [[], ["References#0"]])
def test_an_empty_graph_scores_nothing(scorer_of, passages):
    graph = empty_graph(passages)
    scorer = scorer_of(graph)
    scores = scorer.scores(["What is it?"], np.zeros((1, 0)))
    assert scores.shape == (1, 0)
    assert scorer.passages(scores, 20).tolist() == [[0.0] * len(passages)]
    assert scorer.scores([], np.zeros((0, 0))).shape == (0, 0)


@SCORERS
def test_seeds_of_another_shape_are_refused(scorer_of):
    with pytest.raises(InputError, match=r"shape \(1, 3\), wanted \(2, 10\)"):
        scorer_of(random_graph(2, 10, 20)).scores(QUESTIONS, np.zeros((1, 3)))


def test_the_question_decides_in_the_gfm_alone():
    graph, _ = gene_world(4)
    seeds = one_hot(graph, ["disease D1x"], ["disease D1x"])
    assert len(np.unique(PageRankScorer(graph).scores(QUESTIONS, seeds), axis=0)) == 1
    assert len(np.unique(gfm_scorer(graph).scores(QUESTIONS, seeds), axis=0)) == 2


FOUR = make_graph(["a", "b", "c", "d"], [], {"p": ["a", "b"], "q": ["a", "c"], "r": ["a", "d"], "s": ["b", "d"]})
FOUR_SCORES = np.array([[0.9, 0.3, 0.4, 0.1], [0.0, 0.0, 0.2, 0.0]])


def test_the_gfms_best_entities_count_by_rarity():
    scorer = gfm_scorer(FOUR)
    assert scorer.passages(FOUR_SCORES, 2).tolist() == [
        [pytest.approx(1 / 3), pytest.approx(4 / 3), 1 / 3, 0],
        [0, 1, 0, 0],
    ]
    assert scorer.passages(FOUR_SCORES, 3)[0].tolist() == pytest.approx([5 / 6, 4 / 3, 1 / 3, 1 / 2])


def test_pagerank_sums_the_probabilities_of_all_that_a_passage_mentions():
    scorer = PageRankScorer(FOUR)
    for top in (1, 20):
        assert scorer.passages(FOUR_SCORES, top) == pytest.approx(np.array([[1.2, 1.3, 1.0, 0.4], [0, 0.2, 0, 0]]))
    assert np.array_equal(scorer.passages(FOUR_SCORES, 1)[1:], scorer.passages(FOUR_SCORES[1:], 1))


def test_among_equal_entities_the_first_count_and_none_of_score_0():
    scorer = gfm_scorer(make_graph(["a", "b", "c"], [], {"p": ["a"], "q": ["b"], "r": ["c"]}))
    assert scorer.passages(np.array([[0.5, 0.5, 0.5]]), 2).tolist() == [[1, 1, 0]]
    assert scorer.passages(np.array([[0.0, 0.5, 0.0]]), 3).tolist() == [[0, 1, 0]]


@SCORERS
@pytest.mark.parametrize(
    ("scores", "top", "message"),
    [(np.ones((1, 3)), 0, "at least 1, got 0"), (np.ones((1, 2)), 5, r"shape \(1, 2\), wanted \(questions, 3\)")],
)
def test_unusable_entity_scores_are_refused(scorer_of, scores, top, message):
    with pytest.raises(InputError, match=message):
        scorer_of(make_graph(["a", "b", "c"], [], {"p": ["a"]})).passages(scores, top)


def test_settings_choose_the_scorer(tmp_path):
    from medhop_dspy.graph import weights
    from medhop_dspy.graph.gfm import GFM
    from medhop_dspy.retrieval.manifest import EncoderRecord

    graph, encoder = random_graph(3, 10, 20), HashingEncoder()
    settings = Settings(home=tmp_path)
    seeds = one_hot(graph, ["entity 0", "entity 4"])
    walk = make_scorer(graph, settings, encoder)
    assert np.array_equal(walk.scores(["?"], seeds), PageRankScorer(graph, 0.5).scores(["?"], seeds))
    assert make_scorer(graph, settings.replace(damping=0.7), encoder).digest != walk.digest

    gfm = settings.replace(graph_scorer="gfm")
    assert gfm.gfm_folder == tmp_path / "graph" / "gfm"
    with pytest.raises(ArtefactError, match=r"no weights of a graph model in .*gfm") as missing:
        make_scorer(graph, gfm, encoder)
    assert "medhop graph train" in missing.value.hint
    model = GFM(32, 8, 2)
    weights.save(model, gfm.gfm_folder, {"embedder": {**vars_of(EncoderRecord.of(encoder))}})
    loaded = make_scorer(graph, gfm, encoder)
    assert loaded.digest == GFMScorer(graph, model, encoder).digest != walk.digest
    assert np.array_equal(loaded.scores(["?"], seeds), GFMScorer(graph, model, encoder).scores(["?"], seeds))
    elsewhere = gfm.replace(graph=tmp_path / "other", gfm_model=gfm.gfm_folder)
    assert make_scorer(graph, elsewhere, encoder).digest == loaded.digest


def vars_of(record):
    return {"name": record.name, "revision": record.revision, "digest": record.digest, "dimension": record.dimension}


def test_vectors_of_another_length_are_refused():
    with pytest.raises(ArtefactError, match="reads vectors of 32 numbers, hashing gives 16"):
        gfm_scorer(random_graph(3, 10, 20), HashingEncoder(dimension=16))


def scores_in_another_process() -> str:
    root = Path(__file__).parents[2]
    code = "from tests.graph.test_scoring import digest_of_scores; print(digest_of_scores())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    return done.stdout.strip()


def digest_of_scores() -> str:
    """Hex SHA-256 of the scores of both scorers, to the last bit."""
    import hashlib

    graph = random_graph(4, 200, 600, relations=20, passages=40)
    seeds = one_hot(graph, ["entity 1", "entity 100"], ["entity 7"])
    found = [scorer(graph).scores(QUESTIONS, seeds) for scorer in (PageRankScorer, gfm_scorer)]
    return hashlib.sha256(b"".join(each.tobytes() for each in found)).hexdigest()


def test_another_process_finds_the_same():
    assert digest_of_scores() == digest_of_scores() == scores_in_another_process()
