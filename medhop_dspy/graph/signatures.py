"""The prompts of the knowledge graph: entities of a text, triples that use them, and entities of a question.

The lists of a reply are bounded by a JSON schema, so that a small model cannot go on for ever, and read as plain
values: one malformed item must not cost the others, see :func:`medhop_dspy.graph.triples.clean`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import dspy
from pydantic import WithJsonSchema

from medhop_dspy.graph.names import KINDS

MAX_ENTITIES: Final = 12
MAX_TRIPLES: Final = 10
MAX_QUERY_ENTITIES: Final = 6
ENTITY_TOKENS: Final = 512  # of a reply: about 30 for an entity, 40 for a triple
TRIPLE_TOKENS: Final = 640
_NAME: Final = {"type": "string", "maxLength": 80}
_TYPE: Final = {"type": "string", "enum": [*KINDS, "other"]}
_PHRASE: Final = {"type": "string", "maxLength": 40}


def _objects(limit: int, **fields: dict[str, Any]) -> WithJsonSchema:
    """The schema of at most ``limit`` objects with exactly these fields."""
    item = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return WithJsonSchema({"type": "array", "items": item, "maxItems": limit})


class NamedEntities(dspy.Signature):
    """List the named biomedical things in the evidence: diseases, genes, proteins, drugs, organisms, people, places.

    Copy each name as it is written, the most important first. Leave out pronouns and general words such as patient.
    Example: {"entities": [{"name": "Wilson disease", "type": "disease"}, {"name": "ATP7B", "type": "gene"}]}
    """

    evidence: list[str] = dspy.InputField()
    entities: Annotated[list[object], _objects(MAX_ENTITIES, name=_NAME, type=_TYPE)] = dspy.OutputField(
        desc="objects with name and type; empty if there is none"
    )


class Triples(dspy.Signature):
    """Write the facts that the evidence states about the entities as subject, relation and object.

    Subject and object are names, one of them at least out of the entities; the relation is a short verb phrase. Put
    the name in place of "it" and the like.
    Example: {"triples": [{"subject": "Wilson disease", "relation": "is caused by mutations in", "object": "ATP7B"}]}
    """

    evidence: list[str] = dspy.InputField()
    entities: list[str] = dspy.InputField()
    triples: Annotated[list[object], _objects(MAX_TRIPLES, subject=_NAME, relation=_PHRASE, object=_NAME)] = (
        dspy.OutputField(desc="objects with subject, relation and object; empty if there is none")
    )


class QueryEntities(dspy.Signature):
    """Copy from the question the names of diseases, genes, proteins, drugs, organisms, people and other things.

    Leave out what the question only describes or asks for.
    Example: "Which gene is mutated in Wilson disease?" -> {"entities": ["Wilson disease"]}
    """

    question: str = dspy.InputField()
    entities: list[Annotated[str, WithJsonSchema(_NAME)]] = dspy.OutputField(
        desc="names copied from the question", max_length=MAX_QUERY_ENTITIES
    )
