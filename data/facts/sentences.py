"""Sentences about the rows of the tables.

Every fact has several sentences; a stable hash of the row's id says which one is used and in which order they stand.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

Row = dict[str, str]
MAX_LISTED = 4
STATES = {"compound": "compound heterozygous"}
ARMS = {"p": "short", "q": "long"}
GENE_KINDS = {
    "protein-coding": "protein-coding gene",
    "ncRNA": "gene for a non-coding RNA",
    "rRNA": "gene for a ribosomal RNA",
    "snRNA": "gene for a small nuclear RNA",
    "snoRNA": "gene for a small nucleolar RNA",
}
# What the states of a mutation say about the two copies of the gene.
COPIES = {
    "homozygous|compound": (
        "Both copies of the gene are altered, either by the same change or by two different ones.",
        "Patients have no intact copy of the gene: the two copies bear the same change or one each of their own.",
        "Neither of the two copies of the gene is spared; their changes may be the same or may differ.",
    ),
    "homozygous": (
        "Both copies of the gene are altered.",
        "Neither of the two copies of the gene is intact.",
        "In patients both copies of the gene are affected.",
    ),
    "compound": (
        "Both copies of the gene are altered.",
        "Each of the two copies of the gene has a change.",
        "Patients have no intact copy of the gene.",
    ),
    "heterozygous": (
        "A change in one of the two copies of the gene is enough.",
        "One altered copy of the gene suffices, although the other one is intact.",
        "Only one of the two copies of the gene needs to be altered.",
    ),
    "hemizygous": (
        "There is no second copy of the gene that could make up for the altered one.",
        "The altered copy of the gene is the only one that patients have.",
        "As the altered gene is present in a single copy, nothing makes up for it.",
    ),
}
# Tumours need a second hit, males have one X chromosome: there the states do not say how many copies are altered.
ONE_OF_TWO_UNCLEAR = re.compile(r"tumor|cancer|neoplas|(?:carcin|blast|lymph)oma|omatosis|somatic|germline|X-linked")
SYNDROMES = (
    "a syndrome in which several features come together",
    "one of the syndromes that combine several features",
    "a syndrome with a combination of features",
)
DISEASE_OPENINGS = (
    "{Name} is {kind}.",
    "{Name} is a rare condition and counts as {kind}.",
    "{Name} is classified as {kind}.",
    "Among the rare diseases, {name} is {kind}.",
    "The rare condition known as {name} is {kind}.",
    "The ontology of human diseases counts {name} as {kind}.",
)
CAUSES = (
    "The cause lies in the gene {gene}, where {mutations} are found.",
    "It arises from {mutations} in {gene}.",
    "{Mutations} in the {gene} gene underlie it.",
    "The gene at fault is {gene}; patients carry {mutations} in it.",
    "{gene} is the gene concerned, and {mutations} in it bring the condition about.",
    "At the molecular level, {mutations} of {gene} are responsible.",
)
INHERITANCE = (
    "Inheritance is {mode}.",
    "It is inherited in {a_mode} manner.",
    "Families show {a_mode} pattern of inheritance.",
    "The mode of inheritance is {mode}.",
)
SIGNS = (
    "Recorded signs include {items}.",
    "Patients may show {items}.",
    "Among the possible findings: {items}.",
    "The clinical picture can include {items}.",
)
SITES = ("Recorded as {site}: {items}.", "As for where it shows itself, the {site} on record: {items}.")
AGENTS = ("It is caused by {items}.", "The infectious {agent_is} {items}.", "The infection is due to {items}.")
VECTORS = (
    "Recorded ways and carriers of its transmission include {items}.",
    "It can be spread by {items}.",
    "Transmission is recorded by way of {items}.",
)
SYNONYMS = (
    "It is also known as {items}.",
    "Other names for it include {items}.",
    "In the literature it also goes by {items}.",
    "Names used alongside include {items}.",
)
ACRONYMS = (
    "It is abbreviated {items}.",
    "In short it is written {items}.",
    "{items} can stand for it in short.",
)
NUMBERS = (
    "Catalogues list it as {items}.",
    "It can be looked up as {items}.",
    "For reference, it is entered as {items}.",
    "Databases know it as {items}.",
)
GENE_OPENINGS = (
    "{symbol} is a human {kind}. Its full name is {name}.",
    "{symbol} is a symbol of a human {kind} with the full name {name}.",
    "{symbol} stands for {name}, a human {kind}.",
    "In humans, {symbol} is a {kind}; the name is written out as {name}.",
)
PLACES = (
    "It lies on the {arm} arm of chromosome {chromosome}, {at}.",
    "The gene maps to chromosome {chromosome}, {at}, which is on the {arm} arm.",
    "Its locus is on chromosome {chromosome}: {at} on the {arm} arm.",
    "On the {arm} arm of chromosome {chromosome}, {at}, is where it is found.",
)
OTHER_SYMBOL = (
    "NCBI's list of 2015 has it under the symbol {items}.",
    "In the gene list of 2015 its symbol is {items}.",
    "It is also listed under the symbol {items}.",
)
ALIASES = (
    "Other symbols for it include {items}.",
    "It is also written {items}.",
    "Aliases in use include {items}.",
    "In publications it appears as {items} too.",
)
NEIGHBOURS = (
    "Genes with the same cytogenetic position include {items}.",
    "It shares this position with {items}.",
    "Mapped to the same place: {items}.",
    "The same position is also given for {items}.",
)


def chosen(row_id: str, purpose: str, options: Sequence[str]) -> str:
    """One of the options, always the same one for a row and a purpose."""
    digest = hashlib.sha256(f"{row_id} {purpose}".encode()).digest()
    return options[int.from_bytes(digest[:4], "big") % len(options)]


def shuffled(row_id: str, sentences: list[str]) -> list[str]:
    """The sentences in an order that depends on the row alone; empty ones are left out."""
    ranked = [(hashlib.sha256(f"{row_id} order {i}".encode()).digest(), text) for i, text in enumerate(sentences)]
    return [text for _, text in sorted(ranked) if text]


def upper_first(text: str) -> str:
    """With a capital first letter; all others as they are."""
    return text[:1].upper() + text[1:]


def article(phrase: str) -> str:
    """The phrase with "a" or "an" in front, as it is spoken."""
    first = re.split(r"[\s-]", phrase)[0]
    if re.fullmatch(r"[A-Z]|[A-Z]{2,5}", first):  # spelt out
        vowel = first[0] in "AEFHILMNORSX"
    elif first[0].isdigit():
        vowel = first.startswith("8") or first in {"11", "18"}
    else:
        vowel = first[0] in "aeioAEIO" or (first[0] in "uU" and not re.match(r"(?i)uni|ure|uri|uro", first))
    return f"{'an' if vowel else 'a'} {phrase}"


def listed(items: Sequence[str], last: str = "and") -> str:
    """The items in one phrase: "a", "a and b" or "a, b and c"."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def values(cell: str, limit: int = MAX_LISTED) -> list[str]:
    """The values of a cell, at most ``limit``."""
    return [value for value in cell.split("|") if value][:limit]


def sentence(row: Row, key: str, options: Sequence[str], limit: int = MAX_LISTED, **more: str) -> str:
    """One of the options with the values of the cell ``key`` as ``items``; empty if the cell is empty."""
    items = values(row[key], limit)
    row_id = row.get("doid") or row["gene_id"]
    return chosen(row_id, key, options).format(items=listed(items), **more) if items else ""


def class_phrase(row: Row) -> str:
    """How its class is spoken of: "an eye disease", but "a form of Ehlers-Danlos syndrome"."""
    parent = row["parent"]
    if parent == "syndrome":
        return chosen(row["doid"], "syndrome", SYNDROMES)
    common = parent.casefold() not in row["name"].casefold() and not re.search(r"[A-Z0-9]", parent.replace("X-l", ""))
    head = re.search(r"\b(?:disease|disorder|cancer|abnormality)$|^(?:progeroid|hyperimmunoglobulin) syndrome$", parent)
    return article(parent) if common and head else f"a form of {parent}"


def fit_names(row: Row) -> list[str]:
    """Synonyms that read well in a list: no commas, brackets, conjunctions, capitals throughout or dated words."""
    return [
        name
        for name in values(row["synonyms"], limit=99)
        if not re.search(r"[,;()\[\]/:]|retard|recessiv\b|\b(?:and|or)\b", name) and not name.isupper()
    ]


def mutations_of(row: Row) -> str:
    """For instance "homozygous or compound heterozygous missense mutations"."""
    states = [STATES.get(state, state) for state in values(row["states"])]
    parts = [listed(states, "or") if states else "", row["mutation"], "mutations"]
    return " ".join(filter(None, parts))


def cause(row: Row) -> str:
    """The gene, its mutations and what these mean for its copies; empty if there is no gene."""
    if not row["gene"]:
        return ""
    mutations = mutations_of(row)
    text = chosen(row["doid"], "cause", CAUSES).format(
        gene=row["gene"], mutations=mutations, Mutations=upper_first(mutations)
    )
    copies = (
        ()
        if ONE_OF_TWO_UNCLEAR.search(" ".join(row.values()))
        else COPIES.get("|".join(sorted(row["states"].split("|"), reverse=True)), ())
    )
    return f"{text} {chosen(row['doid'], 'copies', copies)}" if copies else text


def disease_numbers(row: Row) -> str:
    """Where the disease stands in catalogues."""
    items = [f"{row['doid']} in the Human Disease Ontology"]
    items += [f"number {number} in OMIM" for number in values(row["omim"], 1)]
    items += [f"ORPHA:{number} at Orphanet" for number in values(row["orpha"], 1)]
    return chosen(row["doid"], "numbers", NUMBERS).format(items=listed(items))


def disease_text(row: Row) -> str:
    """The text of a disease's page."""
    name = row["name"] + ("," if "," in row["name"] else "")
    opening = chosen(row["doid"], "opening", DISEASE_OPENINGS).format(
        Name=upper_first(name), name=name, kind=class_phrase(row)
    )
    mode = row["inheritance"]
    names = {**row, "synonyms": "|".join(fit_names(row))}
    facts = [
        cause(row),
        chosen(row["doid"], "inheritance", INHERITANCE).format(mode=mode, a_mode=article(mode)) if mode else "",
        sentence(row, "signs", SIGNS, 6),
        sentence(row, "sites", SITES, 6, site="sites" if "|" in row["sites"] else "site"),
        sentence(
            row,
            "agents",
            AGENTS,
            agent_is="agents are" if "|" in row["agents"] else "agent is",
        ),
        sentence(row, "vectors", VECTORS),
        sentence(names, "synonyms", SYNONYMS),
        sentence(row, "acronyms", ACRONYMS, 3),
    ]
    return " ".join([opening, *shuffled(row["doid"], facts), disease_numbers(row)])


def band_phrase(row: Row) -> str:
    """For instance "in band 4p16.3 (NCBI, 2015)"; the year, because some bands have been revised since."""
    first, _, last = row["band"].partition("-")
    if not last:
        return f"in band {first} (NCBI, 2015)"
    prefix = row["chromosome"] + ("" if last[0] in "pq" else re.sub(r"[^pq]", "", first))
    return f"between the bands {first} and {prefix}{last} (NCBI, 2015)"


def gene_numbers(row: Row) -> str:
    """Where the gene stands in catalogues."""
    items = [f"GeneID {row['gene_id']} at NCBI"]
    items += [f"number {row['omim']} in OMIM"] if row["omim"] else []
    items += [f"HGNC:{row['hgnc']}"] if row["hgnc"] else []
    return chosen(row["gene_id"], "numbers", NUMBERS).format(items=listed(items))


def gene_text(row: Row, neighbours: Sequence[str]) -> str:
    """The text of a gene's page; ``neighbours`` are symbols of genes with the same band."""
    name = f"“{row['name']}”" if re.search(r"[,();:]", row["name"]) else row["name"]
    opening = chosen(row["gene_id"], "opening", GENE_OPENINGS).format(
        symbol=row["symbol"], kind=GENE_KINDS[row["kind"]], name=name
    )
    arm = ARMS[re.sub(r"[^pq].*", "", row["band"].lstrip("0123456789XY"))]
    place = chosen(row["gene_id"], "place", PLACES).format(arm=arm, chromosome=row["chromosome"], at=band_phrase(row))
    near = {**row, "neighbours": "|".join(neighbours)}
    facts = [
        place + (" " + sentence(near, "neighbours", NEIGHBOURS) if neighbours else ""),
        sentence(row, "symbol_2015", OTHER_SYMBOL),
        sentence(row, "aliases", ALIASES),
    ]
    return " ".join([opening, *shuffled(row["gene_id"], facts), gene_numbers(row)])
