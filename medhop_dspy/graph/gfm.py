"""The graph foundation model of GFM-RAG: a graph neural network whose messages depend on the question.

Importing this module loads PyTorch, so import it where a model is used.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from medhop_dspy.graph.messages import Edges, propagate


class _Layer(nn.Module):
    """One step of message passing, with a view of the relations of its own."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * hidden, hidden)
        self.layer_norm = nn.LayerNorm(hidden)
        self.relation_projection = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))

    def forward(self, states: Tensor, initial: Tensor, relations: Tensor, edges: Edges) -> Tensor:
        """States (n_nodes, b, hidden) after the step; ``initial`` is one more message to each node."""
        sums = initial + propagate(states, self.relation_projection(relations), edges)
        update: Tensor = self.layer_norm(self.linear(torch.cat([states, sums], dim=-1)))
        return states + update.relu()


class _EntityModel(nn.Module):
    """The layers and the score; a module of its own because the published weights name it."""

    def __init__(self, hidden: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer(hidden) for _ in range(layers))
        self.mlp = nn.Sequential(nn.Linear(2 * hidden, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, 1))

    def forward(self, questions: Tensor, seeds: Tensor, relations: Tensor, edges: Edges) -> Tensor:
        """Logits (b, n_nodes) from questions (b, hidden), seeds (b, n_nodes) and relations (2 R, hidden)."""
        initial = seeds.T[:, :, None] * questions  # (n_nodes, b, hidden)
        states = initial
        for layer in self.layers:
            states = layer(states, initial, relations, edges)
        logits: Tensor = self.mlp(torch.cat([states, questions.expand_as(states)], dim=-1))
        return logits.squeeze(-1).T


class GFM(nn.Module):
    """Scores all entities for a question. The default sizes and the names of the weights are the published 8M model's.

    Memory grows with (nodes x questions x hidden), whatever the number of edges.
    """

    def __init__(self, features: int = 768, hidden: int = 512, layers: int = 6) -> None:
        """Random weights.

        Args:
            features: Length of the vectors of questions and relations.
            hidden: Length of a node's state.
            layers: Steps of message passing, and so the longest path that is followed.
        """
        super().__init__()
        self.features, self.hidden = features, hidden
        self.question_mlp = nn.Linear(features, hidden)
        self.rel_mlp = nn.Linear(features, hidden)
        self.entity_model = _EntityModel(hidden, layers)

    def forward(self, questions: Tensor, seeds: Tensor, relations: Tensor, edges: Edges) -> Tensor:
        """Logits of all entities.

        Args:
            questions: (b, features) vectors.
            seeds: (b, n_entities) weights of the entities that the questions start from, 0 for the others.
            relations: (2 R, features) vectors of the relations, then of their inverses.
            edges: Where messages run.

        Returns:
            (b, n_entities); the larger, the likelier it serves the answer.
        """
        logits: Tensor = self.entity_model(self.question_mlp(questions), seeds, self.rel_mlp(relations), edges)
        return logits
