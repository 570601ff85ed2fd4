"""Small knowledge graphs in memory."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

import numpy as np
from scipy.sparse import csr_array

from medhop_dspy.graph.index import GraphIndex
from medhop_dspy.graph.manifest import GraphManifest, GraphRecipe
from medhop_dspy.retrieval.manifest import EncoderRecord
from tests.retrieval.hashing_encoder import HashingEncoder


def make_graph(
    names: Sequence[str],
    facts: Sequence[tuple[str, str, str]],
    passages: Mapping[str, Sequence[str]],
    similar: Mapping[tuple[str, str], float] | None = None,
    weights: Sequence[float] | None = None,
) -> GraphIndex:
    """The graph of these facts; ``passages`` says which entities each passage mentions, ``weights`` those of facts."""
    encoder = HashingEncoder()
    entity = {name: n for n, name in enumerate(names)}
    passage = {name: n for n, name in enumerate(passages)}
    relations = sorted({"synonym", *(relation for _, relation, _ in facts)})
    mentions = np.zeros((len(names), len(passages)), np.float32)
    for where, mentioned in passages.items():
        mentions[[entity[name] for name in mentioned], passage[where]] = 1
    similar = similar or {}
    facts_digest = sha256(repr((names, facts, passages, similar, weights)).encode()).hexdigest()
    return GraphIndex(
        names=tuple(names),
        types=("",) * len(names),
        relations=tuple(relations),
        edges=np.array([(entity[h], relations.index(r), entity[t]) for h, r, t in facts], np.int64).reshape(-1, 3),
        edge_weights=np.array(weights or [1] * len(facts), np.float32),
        support=csr_array((len(facts), len(passages)), dtype=np.float32),
        mentions=csr_array(mentions),
        passage_ids=tuple(passages),
        passage_titles=tuple(passages),
        passage_edges=np.array([(passage[a], passage[b]) for a, b in similar], np.int64).reshape(-1, 2),
        passage_weights=np.array(list(similar.values()), np.float32),
        vectors=encoder.embed(names),
        manifest=GraphManifest(facts_digest, "dictionary", (), EncoderRecord.of(encoder), GraphRecipe()),
    )


def random_graph(seed: int, entities: int, facts: int, relations: int = 3, passages: int = 5) -> GraphIndex:
    """Facts between random entities; some entities are in no fact or no passage."""
    rng = np.random.default_rng(seed)
    names = [f"entity {n}" for n in range(entities)]
    ids = [f"passage{n}#0" for n in range(passages)]
    ends = rng.integers(entities, size=(facts, 2)) if entities else np.zeros((0, 2), np.int64)
    chosen = {(names[h], f"relation {rng.integers(relations)}", names[t]) for h, t in ends.tolist()}
    mentioned = {p: [name for name in names if rng.random() < 0.3] for p in ids}
    pairs = {(a, b): float(rng.uniform(0.5, 1)) for n, a in enumerate(ids) for b in ids[n + 1 :] if rng.random() < 0.5}
    return make_graph(names, sorted(chosen), mentioned, pairs)


def empty_graph(passages: Sequence[str] = ()) -> GraphIndex:
    """No entities."""
    return make_graph([], [], {p: [] for p in passages})


def gene_world(diseases: int) -> tuple[GraphIndex, list[tuple[str, list[str]]]]:
    """Diseases caused by genes that lie on chromosomes, and two-hop questions with the passage that answers them."""
    names, facts, passages, questions = [f"chromosome {c}" for c in "ABCDE"], [], {}, []
    for n in range(diseases):
        disease, gene, chromosome = f"disease D{n}x", f"gene G{n}x", f"chromosome {'ABCDE'[n % 5]}"
        names += [disease, gene]
        facts += [(disease, "is caused by", gene), (gene, "lies on", chromosome), (disease, "occurs with", "fever")]
        passages[f"{disease}#0"] = [disease, gene, "fever"]
        passages[f"{gene}#0"] = [gene, chromosome]
        questions.append((f"On which chromosome is the gene that causes {disease}?", [f"{gene}#0"]))
    return make_graph([*names, "fever"], facts, passages), questions
