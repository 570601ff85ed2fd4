"""Derive the sample in this folder from open tables: ``python make_sample.py FOLDER``.

FOLDER holds DO_rare_slim.obo (Disease Ontology) and GARD_genes.csv (Orphanet's gene associations as tabulated by GARD).
The same tables always give the same two files.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

# ORPHAcode, Disease Ontology id that names it, ORPHAcode that the genes are recorded under where it is not the same:
# Orphanet records the genes of these disorders under a subtype.
DISORDERS = (
    ("558", "DOID:14323", "284963"),
    ("586", "DOID:1485", ""),
    ("399", "DOID:12858", ""),
    ("716", "DOID:9281", "79254"),
    ("355", "DOID:1926", "77259"),
    ("324", "DOID:14499", ""),
    ("365", "DOID:2752", "308552"),
    ("905", "DOID:893", ""),
    ("56", "DOID:9270", ""),
    ("636", "DOID:0111253", "363700"),
    ("637", "DOID:0111252", ""),
    ("805", "DOID:13515", ""),
    ("286", "DOID:14756", ""),
    ("536467", "DOID:0050802", ""),
    ("75496", "DOID:0080738", ""),
    ("216796", "DOID:0110334", ""),
    ("216804", "DOID:0110341", ""),
    ("216812", "DOID:0110339", ""),
    ("774", "DOID:1270", ""),
    ("98896", "DOID:11723", ""),
    ("98895", "DOID:9883", ""),
    ("778", "DOID:1206", ""),
    ("908", "DOID:14261", ""),
    ("95", "DOID:12705", ""),
    ("845", "DOID:3320", "309178"),
    ("796", "DOID:3323", "309155"),
    ("487", "DOID:10587", "206436"),
    ("93473", "DOID:0111390", ""),
    ("580", "DOID:12799", "217085"),
    ("79269", "DOID:0111395", ""),
    ("79270", "DOID:0111394", ""),
    ("309297", "DOID:0111391", ""),
    ("583", "DOID:12800", "276212"),
    ("892", "DOID:14175", ""),
    ("524", "DOID:3012", ""),
    ("342", "DOID:2987", ""),
    ("110", "DOID:1935", ""),
    ("231169", "DOID:0110826", ""),
    ("231178", "DOID:0110827", ""),
    ("231183", "DOID:0110828", ""),
    ("88917", "DOID:0110034", ""),
    ("827", "DOID:0050817", ""),
    ("104", "DOID:705", ""),
    ("101081", "DOID:0110148", ""),
    ("101082", "DOID:0110152", ""),
    ("101075", "DOID:0110209", ""),
    ("70", "DOID:12377", "83330"),
    ("465508", "DOID:0111029", ""),
    ("225123", "DOID:0111030", ""),
    ("79276", "DOID:3890", ""),
    ("79473", "DOID:4346", ""),
    ("79273", "DOID:13269", ""),
    ("79278", "DOID:13270", ""),
    ("15", "DOID:4480", ""),
    ("232", "DOID:10923", ""),
    ("136", "DOID:13945", ""),
    ("100", "DOID:12704", ""),
    ("125", "DOID:2717", ""),
    ("902", "DOID:5688", ""),
    ("740", "DOID:3911", ""),
    ("861", "DOID:2908", ""),
    ("565", "DOID:1838", ""),
    ("79241", "DOID:856", ""),
    ("394", "DOID:9263", ""),
    ("79239", "DOID:0111459", ""),
    ("2869", "DOID:3852", ""),
    ("822", "DOID:12971", ""),
    ("652", "DOID:10017", ""),
    ("247698", "DOID:0050430", ""),
    ("730", "DOID:898", ""),
    ("223", "DOID:12387", ""),
    ("1452", "DOID:13994", ""),
    ("317", "DOID:0050467", ""),
    ("2828", "DOID:14330", ""),
    ("42", "DOID:0080153", ""),
    ("803", "DOID:332", ""),
    ("640", "DOID:0060843", ""),
    ("307", "DOID:4890", ""),
    ("664", "DOID:9271", ""),
    ("60", "DOID:13372", ""),
    ("729", "DOID:8997", ""),
    ("98878", "DOID:12134", "169802"),
    ("98879", "DOID:12259", "169793"),
    ("903", "DOID:12531", "166078"),
    ("790", "DOID:768", "357027"),
    ("436", "DOID:14213", "247623"),
    ("418", "DOID:0050811", "315306"),
    ("511", "DOID:9269", "268145"),
    ("214", "DOID:9266", "93612"),
    ("364", "DOID:0081329", "79258"),
    ("101330", "DOID:3132", "443062"),
    ("406", "DOID:13810", "391665"),
    ("273", "DOID:11722", "589821"),
    ("72", "DOID:1932", "411511"),
)


def read_terms(path: Path) -> dict[str, dict[str, list[str]]]:
    """Fields of each term by id: ``name``, ``synonym`` (exact ones, bare text) and ``xref`` (bare ids)."""
    terms = {}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        fields = defaultdict(list)
        for line in block.splitlines():
            key, _, value = line.partition(": ")
            if key == "synonym":
                match = re.match(r'"((?:[^"\\]|\\.)*)" EXACT', value)
                value = match[1].replace('\\"', '"') if match else ""
            fields[key].append(value.split(" ")[0] if key == "xref" else value)
        if block.startswith("[Term]"):
            terms[fields["id"][0]] = fields
    return terms


def read_genes(path: Path) -> dict[str, list[dict[str, str]]]:
    """Rows of Orphanet by ORPHAcode, in the table's order."""
    genes = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            source, _, code = row["SourceLabelID"].partition(":")
            if source == "ORPHA":
                genes[code].append(row)
    return genes


def child(parent: ElementTree.Element, tag: str, text: str = "", **attributes: str) -> ElementTree.Element:
    """A new last child of ``parent``."""
    element = ElementTree.SubElement(parent, tag, attributes)
    element.text = text or None
    return element


def new_disorder(parent: ElementTree.Element, code: str, name: str) -> ElementTree.Element:
    """A Disorder with the fields that both products have."""
    disorder = child(parent, "Disorder", id=code)
    child(disorder, "OrphaCode", code)
    child(disorder, "ExpertLink", f"https://www.orpha.net/en/disease/detail/{code}", lang="en")
    child(disorder, "Name", name, lang="en")
    return disorder


def add_synonyms(parent: ElementTree.Element, synonyms: list[str]) -> None:
    """A SynonymList as in Orphadata, empty if there is none."""
    container = child(parent, "SynonymList", count=str(len(synonyms)))
    for synonym in synonyms:
        child(container, "Synonym", synonym, lang="en")


def add_names(parent: ElementTree.Element, code: str, term: dict[str, list[str]]) -> None:
    """A disorder of product 1: names and OMIM numbers."""
    name = term["name"][0]
    disorder = new_disorder(parent, code, name)
    add_synonyms(disorder, [s for s in dict.fromkeys(term["synonym"]) if s and s != name])
    numbers = [x.removeprefix("MIM:") for x in term["xref"] if re.fullmatch(r"MIM:[0-9]{6}", x)]
    references = child(disorder, "ExternalReferenceList", count=str(len(numbers)))
    for number in numbers:
        reference = child(references, "ExternalReference")
        child(reference, "Source", "OMIM")
        child(reference, "Reference", number)


def add_genes(parent: ElementTree.Element, code: str, name: str, rows: list[dict[str, str]]) -> None:
    """A disorder of product 6: its genes."""
    disorder = new_disorder(parent, code, name)
    links = child(disorder, "DisorderGeneAssociationList", count=str(len(rows)))
    for row in rows:
        link = child(links, "DisorderGeneAssociation")
        gene = child(link, "Gene")
        child(gene, "Name", row["GeneTitle"], lang="en")
        child(gene, "Symbol", row["GeneSymbol"])
        synonyms = re.split(r",\s+(?![^()]*\))", row["GeneSynonym"].strip("[]"))
        add_synonyms(gene, [s for s in dict.fromkeys(synonyms) if s])
        loci = child(gene, "LocusList", count=str(len(row["Locus"].split("; "))))
        for locus in row["Locus"].split("; "):
            child(child(loci, "Locus"), "GeneLocus", locus)
        child(child(link, "DisorderGeneAssociationType"), "Name", row["AssociationType"], lang="en")
        child(child(link, "DisorderGeneAssociationStatus"), "Name", row["AssociationStatus"], lang="en")


def new_product() -> tuple[ElementTree.Element, ElementTree.Element]:
    """Root and DisorderList of a product."""
    root = ElementTree.Element("JDBOR", {"copyright": "Orphanet, INSERM; changed, see README.md"})
    licence = child(child(root, "Availability"), "Licence")
    child(licence, "FullName", "Creative Commons Attribution 4.0 International", lang="en")
    child(licence, "ShortIdentifier", "CC-BY-4.0")
    child(licence, "LegalCode", "https://creativecommons.org/licenses/by/4.0/legalcode")
    return root, child(root, "DisorderList", count=str(len(DISORDERS)))


def write(root: ElementTree.Element, path: Path) -> None:
    """Write with the encoding that Orphadata declares."""
    ElementTree.indent(root, "")
    path.write_bytes(ElementTree.tostring(root, encoding="ISO-8859-1", xml_declaration=True) + b"\n")


def main(folder: Path, target: Path) -> None:
    """Write en_product1_sample.xml and en_product6_sample.xml into ``target``."""
    terms = read_terms(folder / "DO_rare_slim.obo")
    genes = read_genes(folder / "GARD_genes.csv")
    names_root, names = new_product()
    genes_root, associations = new_product()
    for code, doid, genes_code in DISORDERS:
        add_names(names, code, terms[doid])
        add_genes(associations, code, terms[doid]["name"][0], genes[genes_code or code])
    write(names_root, target / "en_product1_sample.xml")
    write(genes_root, target / "en_product6_sample.xml")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_sample.py FOLDER")
    main(Path(sys.argv[1]), Path(__file__).parent)
