"""Message passing over the facts of a graph, without ever holding a message for each edge.

Importing this module loads PyTorch, so import it where a model is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from medhop_dspy.threads import made_once

if TYPE_CHECKING:
    from medhop_dspy.graph.index import GraphIndex

# Numbers in one block of sums, 1 MB in single precision, which stays in a core's cache.
BLOCK: Final = 1 << 18


@dataclass(frozen=True, eq=False, slots=True)
class Bags:
    """Edges that share relation and receiver, together.

    Attributes:
        senders: (n_edges,) int64 nodes, bag after bag.
        starts: (n_bags + 1,) int64, where each bag begins in ``senders``, and the end of the last.
        relations: (n_bags,) int64.
        receivers: (n_bags,) int64 nodes, ascending.
    """

    senders: Tensor
    starts: Tensor
    relations: Tensor
    receivers: Tensor

    @classmethod
    def of(cls, senders: Tensor, relations: Tensor, receivers: Tensor) -> Bags:
        """Put edges, three tensors (n_edges,), into bags."""
        kinds = int(relations.max()) + 1 if relations.numel() else 1
        keys, order = (receivers * kinds + relations).sort(stable=True)
        bags, sizes = torch.unique_consecutive(keys, return_counts=True)
        starts = functional.pad(sizes.cumsum(0), (1, 0))
        return cls(senders[order], starts, bags % kinds, bags // kinds)

    def blocks(self, width: int) -> Iterator[Bags]:
        """The bags in order, so many at a time that their sums of ``width`` numbers fill :data:`BLOCK`."""
        size = max(1, BLOCK // max(1, width))
        for first in range(0, len(self.relations), size):
            starts = self.starts[first : first + size + 1]
            bags = slice(first, first + size)
            yield Bags(
                self.senders[int(starts[0]) : int(starts[-1])],
                starts - starts[0],
                self.relations[bags],
                self.receivers[bags],
            )

    def sums(self, states: Tensor) -> Tensor:
        """(n_bags, width) sums of the senders' rows in ``states`` (n_nodes, width)."""
        return functional.embedding_bag(self.senders, states, self.starts[:-1], mode="sum")


@dataclass(frozen=True, eq=False)
class Edges:
    """Directed edges along which messages run, every fact forwards and, with its inverse relation, backwards.

    Attributes:
        heads: (n,) int64 nodes that send.
        relations: (n,) int64; the inverse of relation r of R is r + R.
        tails: (n,) int64 nodes that receive.
    """

    heads: Tensor
    relations: Tensor
    tails: Tensor

    @classmethod
    def of(cls, graph: GraphIndex) -> Edges:
        """The edges of G_ent, twice as many as it has facts."""
        facts = torch.from_numpy(np.array(graph.edges, np.int64).reshape(-1, 3))
        heads, relations, tails = facts.unbind(1)
        both = torch.cat([relations, relations + len(graph.relations)])
        return cls(torch.cat([heads, tails]), both, torch.cat([tails, heads]))

    @made_once
    def incoming(self) -> Bags:
        """The edges by who receives."""
        return Bags.of(self.heads, self.relations, self.tails)

    @made_once
    def outgoing(self) -> Bags:
        """The edges turned round, by who sent."""
        return Bags.of(self.tails, self.relations, self.heads)

    def without(self, pairs: Tensor) -> Edges:
        """The edges that do not join two nodes of ``pairs`` (n, 2), whatever their direction and relation."""

        def unordered(a: Tensor, b: Tensor) -> Tensor:
            return torch.stack([torch.minimum(a, b), torch.maximum(a, b)])

        own, removed = unordered(self.heads, self.tails), unordered(pairs[:, 0], pairs[:, 1])
        base = int(max(own.max(), removed.max())) + 1 if own.numel() and removed.numel() else 1
        kept = ~torch.isin(own[0] * base + own[1], removed[0] * base + removed[1])
        return Edges(self.heads[kept], self.relations[kept], self.tails[kept])


def propagate(states: Tensor, relations: Tensor, edges: Edges) -> Tensor:
    """The sum over a node's incoming edges of (state of the head) * (relation), the message of DistMult.

    Written with a message for each edge it would hold edges x hidden numbers, and several times that for the backward
    pass. A sparse product for each relation would make a (nodes, hidden) result for each of thousands of relations,
    most of which have a handful of edges. Here the states of the heads that reach a node by one relation are summed
    first, straight from where they lie, which is a sparse product, too; the sums are multiplied by their relations
    and summed by node, some thousand at a time. The backward pass does it all again instead of keeping it.

    Args:
        states: (n_nodes, b, hidden).
        relations: (2 R, hidden).
        edges: Between these nodes.

    Returns:
        (n_nodes, b, hidden); differentiable once by ``states`` and ``relations``.
    """
    return cast("Tensor", _Propagate.apply(states, relations, edges))  # type: ignore[no-untyped-call]


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, relations: Tensor, edges: Edges) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(states, relations)
        ctx.edges = edges
        return _received(states, relations, edges.incoming)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401
        states, relations = ctx.saved_tensors
        gradient = gradient.contiguous()
        # A node gets the gradient of those it sent to, along the same edges turned round.
        of_states = _received(gradient, relations, ctx.edges.outgoing)
        of_relations, flat = torch.zeros_like(relations), states.flatten(1)
        for block in ctx.edges.incoming.blocks(flat.shape[1]):
            sums = block.sums(flat).view(-1, *states.shape[1:])
            products = sums.mul_(gradient.index_select(0, block.receivers)).sum(1)
            of_relations.index_add_(0, block.relations, products)
        return of_states, of_relations, None


def _received(states: Tensor, relations: Tensor, bags: Bags) -> Tensor:
    """(n_nodes, b, hidden) what each node receives of ``states`` through ``bags``."""
    flat, received = states.flatten(1), torch.zeros_like(states)
    for block in bags.blocks(flat.shape[1]):
        messages = block.sums(flat).view(-1, *states.shape[1:])
        messages *= relations.index_select(0, block.relations)[:, None]
        first, last = int(block.receivers[0]), int(block.receivers[-1])
        starts = torch.searchsorted(block.receivers, torch.arange(first, last + 1))
        rows = torch.arange(len(block.receivers))
        # A node may have messages in two blocks, and none in the range of one.
        summed = functional.embedding_bag(rows, messages.flatten(1), starts, mode="sum")
        received[first : last + 1] += summed.view(-1, *states.shape[1:])
    return received
