"""Derive the two tables in this folder from open data: ``python derive_tables.py FOLDER``.

FOLDER holds DO_rare_slim.obo (Human Disease Ontology) and Homo_sapiens.gene_info.gz (NCBI). The same files always give
the same two tables. What is not understood is left out; the numbers, by reason, go to standard error.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from definitions import (
    PLACE,
    SEPARATOR,
    LeftOutError,
    Term,
    cause_of,
    classes_of,
    inheritance_of,
    initials,
    parent_of,
    read_terms,
    relations_of,
    signs_of,
    stem,
    unique,
)

BAND = re.compile(r"([0-9]{1,2}|X|Y)([pq])[0-9]+(?:\.[0-9]+)?(?:-([pq])?[0-9]+(?:\.[0-9]+)?)?")
MAX_NAME, MAX_NAMES = 60, 5  # letters of a synonym, synonyms of a disease
PER_ARM = 1
KINDS = frozenset({"protein-coding", "ncRNA", "rRNA", "snRNA", "snoRNA"})


class Gene(NamedTuple):
    """A row of genes.tsv. ``symbol_2015`` is gene_info's symbol where the ontology uses another one, old or new."""

    gene_id: str
    symbol: str
    symbol_2015: str
    name: str
    aliases: str
    chromosome: str
    band: str
    kind: str
    omim: str
    hgnc: str


class Disease(NamedTuple):
    """A row of diseases.tsv; cells with several values hold them separated by ``|``."""

    doid: str
    name: str
    parent: str
    gene: str = ""
    states: str = ""
    mutation: str = ""
    inheritance: str = ""
    signs: str = ""
    sites: str = ""
    agents: str = ""
    vectors: str = ""
    synonyms: str = ""
    acronyms: str = ""
    omim: str = ""
    orpha: str = ""


class GeneTable:
    """Genes of gene_info by symbol and by alias."""

    def __init__(self, rows: Iterable[dict[str, str]], disease_names: Iterable[str]) -> None:
        """Take over the rows; aliases that are also names of diseases, such as MFS1, will not be printed.

        Genes of unknown type are mostly places that a disease was mapped to and are named after it.
        """
        self.rows = {row["Symbol"]: row for row in rows}
        self._names = {form for name in disease_names for form in (name.casefold(), stem(name), initials(name))}
        self._names |= {stem(symbol) for symbol, row in self.rows.items() if row["type_of_gene"] == "unknown"}
        self._names -= {""}
        self._owners = defaultdict(list)
        for symbol, row in self.rows.items():
            for alias in row["Synonyms"].split(SEPARATOR):
                self._owners[alias].append(symbol)

    def find(self, symbol: str) -> dict[str, str]:
        """The gene that has this symbol, or alone has it as an alias.

        Raises:
            LeftOutError: there is none, or there are several.
        """
        if symbol in self.rows:
            return self.rows[symbol]
        owners = self._owners.get(symbol, [])
        if len(owners) != 1:
            raise LeftOutError(
                "gene symbol is shared by several genes" if owners else "gene symbol is not in gene_info"
            )
        return self.rows[owners[0]]

    def aliases(self, row: dict[str, str], symbol: str, limit: int = 5) -> list[str]:
        """Aliases fit to be printed: no other gene's symbol, no disease's name, no name of a clone."""
        return [
            alias
            for alias in row["Synonyms"].split(SEPARATOR)
            if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{1,11}", alias)
            and not re.match(r"bA|dJ|RP\d|CT[ABCD]-|hCG|PRO\d|UNQ|MSTP|LP\d|HSPC|KIAA|MGC|FLJ", alias)
            and alias not in self.rows
            and alias != symbol
            and len(self._owners[alias]) == 1
            and not self._of_disease(alias)
        ][:limit]

    def _of_disease(self, alias: str) -> bool:
        """Whether it is an acronym of a disease, with or without the letters and digits of a subtype."""
        return alias.casefold() in self._names or stem(alias) in self._names


def read_gene_info(path: Path) -> Iterator[dict[str, str]]:
    """Rows of NCBI's gene_info by column name; its header is a comment whose names stand between blanks."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        columns = file.readline().removeprefix("#Format:").split(" (tab")[0].split()
        for line in file:
            yield dict(zip(columns, line.rstrip("\n").split("\t"), strict=True))


def new_gene(row: dict[str, str], symbol: str, table: GeneTable) -> Gene:
    """The row of genes.tsv of a gene that the ontology calls ``symbol``.

    Raises:
        LeftOutError: its place is not one band or range of bands of one arm, or it is of no known kind.
    """
    match = BAND.fullmatch(row["map_location"])
    if not match or match[1] != row["chromosome"] or match[3] not in (None, match[2]):
        raise LeftOutError("gene without one clean band")
    if row["type_of_gene"] not in KINDS:
        raise LeftOutError("gene of unknown kind")
    references = dict(re.findall(r"(MIM|HGNC):(?:HGNC:)?([0-9]+)", row["dbXrefs"]))
    name = row["Full_name_from_nomenclature_authority"]
    return Gene(
        gene_id=row["GeneID"],
        symbol=symbol,
        symbol_2015=row["Symbol"] if row["Symbol"] != symbol else "",
        name=row["description"] if name == "-" else name,
        aliases=SEPARATOR.join(table.aliases(row, symbol)),
        chromosome=row["chromosome"],
        band=row["map_location"],
        kind=row["type_of_gene"],
        omim=references.get("MIM", ""),
        hgnc=references.get("HGNC", ""),
    )


def new_disease(term: Term, table: GeneTable, classes: set[str]) -> Disease:
    """The row of diseases.tsv of a term, whose gene has the ontology's symbol.

    Raises:
        LeftOutError: the term has no gene and few other facts, or a fact that is missing, unclear or contradicted.
    """
    if PLACE.search(term.name):
        raise LeftOutError("name holds a chromosome")
    parent = parent_of(term, classes)
    row = Disease(
        doid=term.id,
        name=term.name,
        parent=parent,
        inheritance=inheritance_of(term, parent),
        synonyms=SEPARATOR.join(synonyms_of(term)),
        acronyms=SEPARATOR.join(term.acronyms),
        omim=SEPARATOR.join(term.omim),
        orpha=SEPARATOR.join(term.orpha),
    )
    relations = relations_of(term.definition)
    if not re.search(r"\bgenes?\b|mutation|chromosom|deletion|inherit", term.definition):
        return without_gene(row, relations)
    symbol, states, kind, place = cause_of(term.definition)
    check_place(symbol, place, table)
    row = row._replace(gene=symbol, states=states, mutation=kind)
    check_inheritance(row, table.find(symbol)["chromosome"])
    signs = unique([*signs_of(term.definition), *relations["signs"]])
    return row._replace(signs=SEPARATOR.join(signs), sites=SEPARATOR.join(relations["sites"]))


def synonyms_of(term: Term) -> list[str]:
    """Exact synonyms of usual length, once each without regard to case, and without those that hold a chromosome."""
    seen = {term.name.casefold(): ""}
    for name in sorted(term.synonyms, key=str.isupper):  # "FAMILIAL X" yields to "familial X"
        if len(name) <= MAX_NAME and not PLACE.search(name):
            seen.setdefault(name.casefold(), name)
    return unique(seen.values())[:MAX_NAMES]


def without_gene(row: Disease, relations: dict[str, list[str]]) -> Disease:
    """The row with what the relations say; raises LeftOutError if that is too little for a page."""
    if sum(map(bool, relations.values())) < 2:
        raise LeftOutError("no gene and few relations")
    return row._replace(**{key: SEPARATOR.join(values) for key, values in relations.items()})


def check_place(symbol: str, place: str, table: GeneTable) -> None:
    """Raise LeftOutError if the place that a definition gives (may be empty) is not that of the gene of this symbol."""
    if "orf" in symbol:
        raise LeftOutError("gene symbol names its chromosome")
    row = table.find(symbol)
    new_gene(row, symbol, table)
    if not place and row["Symbol"] != symbol:
        raise LeftOutError("gene found by an alias, and no place to confirm it")
    if not re.match(rf"{place}(?![0-9])" if place[-1:].isdigit() else place, row["map_location"]):
        raise LeftOutError("place of the gene disagrees")


def check_inheritance(row: Disease, chromosome: str) -> None:
    """Raise LeftOutError if the mode of inheritance does not go with the chromosome or the states of the gene."""
    states = set(row.states.split(SEPARATOR)) - {""}
    if ("X-linked" in row.inheritance) != (chromosome == "X") and row.inheritance:
        raise LeftOutError("inheritance disagrees with the chromosome")
    if row.inheritance == "autosomal recessive" and states == {"heterozygous"}:
        raise LeftOutError("inheritance disagrees with the states")
    if row.inheritance == "autosomal dominant" and states and "heterozygous" not in states:
        raise LeftOutError("inheritance disagrees with the states")


def one_symbol_each(diseases: Iterable[Disease], table: GeneTable) -> tuple[list[Disease], list[Gene]]:
    """Diseases and their genes, where each gene has the one symbol that the ontology uses most often for it."""
    diseases = list(diseases)
    uses: dict[str, Counter[str]] = defaultdict(Counter)
    for disease in diseases:
        if disease.gene:
            uses[table.find(disease.gene)["Symbol"]][disease.gene] += 1
    best = {official: min(count, key=lambda symbol: (-count[symbol], symbol)) for official, count in uses.items()}
    genes = [new_gene(table.rows[official], symbol, table) for official, symbol in best.items()]
    renamed = [d._replace(gene=best[table.find(d.gene)["Symbol"]]) if d.gene else d for d in diseases]
    return renamed, genes


def neighbours(genes: Iterable[Gene], table: GeneTable) -> Iterator[Gene]:
    """Company for genes that are alone in their band: protein-coding genes with an OMIM number, lowest ids first.

    At most one for a band and PER_ARM for an arm of a chromosome.
    """
    genes = list(genes)
    bands = Counter(gene.band for gene in genes)
    known = {gene.gene_id for gene in genes}
    arms: Counter[str] = Counter()
    for symbol, row in sorted(table.rows.items(), key=lambda item: int(item[1]["GeneID"])):
        fit = row["type_of_gene"] == "protein-coding" and "MIM:" in row["dbXrefs"] and "orf" not in symbol
        band = row["map_location"]
        arm = re.split(r"(?<=[pq])", band)[0]
        if bands[band] == 1 and arms[arm] < PER_ARM and fit and row["GeneID"] not in known:
            bands[band] += 1
            arms[arm] += 1
            yield new_gene(row, symbol, table)


def derive(terms: Iterable[Term], rows: Iterable[dict[str, str]]) -> tuple[list[Disease], list[Gene], Counter[str]]:
    """Rows of both tables in the order of their ids, and how many terms were left out for which reason."""
    terms = list(terms)
    every = [name for t in terms for name in (t.name, *t.synonyms, *t.acronyms, *t.other_names)]
    table = GeneTable(rows, every)
    classes = classes_of(terms)
    diseases, left_out = [], Counter[str]()
    for term in terms:
        try:
            diseases.append(new_disease(term, table, classes))
        except LeftOutError as reason:
            left_out[str(reason)] += 1
    diseases, genes = one_symbol_each(diseases, table)
    genes += neighbours(genes, table)
    return sorted(diseases), sorted(genes, key=lambda gene: int(gene.gene_id)), left_out


def write(path: Path, rows: Iterable[NamedTuple], columns: Iterable[str]) -> None:
    """A tab-separated table with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        writer.writerow(columns)
        writer.writerows(rows)


def main(folder: Path, target: Path) -> None:
    """Write diseases.tsv and genes.tsv into ``target``."""
    terms = read_terms(folder / "DO_rare_slim.obo")
    diseases, genes, left_out = derive(terms, read_gene_info(folder / "Homo_sapiens.gene_info.gz"))
    write(target / "diseases.tsv", diseases, Disease._fields)
    write(target / "genes.tsv", genes, Gene._fields)
    for reason, count in sorted(left_out.items()):
        sys.stderr.write(f"{count:5} left out: {reason}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: derive_tables.py FOLDER")
    main(Path(sys.argv[1]), Path(__file__).parent)
