"""The two closed sets that route a question: what is asked for, and how to look for it."""

from __future__ import annotations

from enum import StrEnum


class AnswerType(StrEnum):
    """What kind of thing the answer is.

    Members:
        CHROMOSOME: A chromosome: 1 to 22, X, Y or MT.
        GENE: A gene, by symbol where it has one.
        GENE_MUTATION: A variant, or the gene whose mutation is meant.
        PROTEIN: A protein, peptide or receptor.
        ENZYME: A protein that catalyses a reaction.
        DISEASE_OR_SYNDROME: A disease, syndrome, disorder, tumour or other condition.
        SYMPTOM: A symptom, sign or manifestation.
        MEDICATION: A drug, drug class or vaccine.
        PROCEDURE: A test, imaging study, operation or other intervention.
        ORGANISM: An organism or taxon, from virus to mammal.
        FLUID_TYPE: A body fluid.
        PHASE: A phase or stage of a process, cycle, disease or trial.
        NUMBER: A count, measure, percentage, ratio or year.
        LOCATION: A place in the body, in the genome (cytogenetic band) or in the world.
        MEDICAL_SPECIALIST: A kind of doctor or health professional.
        FIELD_OF_BIOLOGY: A field of science or medical specialty.
        PRESS_OR_PUBLISHER: A press, publisher or journal.
        PERSON: A named person.
        BONE: A bone.
        CHEMICAL: A chemical element, compound, vitamin, amino acid or nutrient.
        DURATION: A span of time, with its unit.
        YES_NO: Exactly yes or no.
        OTHER: Everything else.
    """

    CHROMOSOME = "chromosome"
    GENE = "gene"
    GENE_MUTATION = "gene_mutation"
    PROTEIN = "protein"
    ENZYME = "enzyme"
    DISEASE_OR_SYNDROME = "disease_or_syndrome"
    SYMPTOM = "symptom"
    MEDICATION = "medication"
    PROCEDURE = "procedure"
    ORGANISM = "organism"
    FLUID_TYPE = "fluid_type"
    PHASE = "phase"
    NUMBER = "number"
    LOCATION = "location"
    MEDICAL_SPECIALIST = "medical_specialist"
    FIELD_OF_BIOLOGY = "field_of_biology"
    PRESS_OR_PUBLISHER = "press_or_publisher"
    PERSON = "person"
    BONE = "bone"
    CHEMICAL = "chemical"
    DURATION = "duration"
    YES_NO = "yes_no"
    OTHER = "other"


class Strategy(StrEnum):
    """How evidence for a question is looked for.

    Members:
        DIRECT: One fact about something that the question names.
        DEFINITION: The name of something that the question describes.
        INTERSECTION: The one thing that satisfies several conditions at once.
        MULTIHOP: A chain: each step needs the answer of the one before.
    """

    DIRECT = "direct"
    DEFINITION = "definition"
    INTERSECTION = "intersection"
    MULTIHOP = "multihop"
