"""Write one short page for each disease and gene of the tables: ``python make_pages.py OUTPUT.jsonl``.

The pages go with the other ``.jsonl`` files of the output's folder: what one of these has an article on gets no page.
The same tables and articles always give the same bytes. A page on a disease never tells where its gene lies, and a
page on a gene never tells which disease it causes.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from sentences import disease_text, gene_text, upper_first

MIN_WORDS, MAX_WORDS = 40, 140
Row = dict[str, str]
Page = dict[str, str]
SPELLINGS = (("haem", "hem"), ("aem", "em"), ("oed", "ed"), ("oes", "es"), ("our", "or"), ("rhoea", "rhea"))
ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}
FILLERS = frozenset({"the", "of", "type", "gene", "mellitus", "s", "disorder"})


def read_table(path: Path) -> list[Row]:
    """Rows of a tab-separated table with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def name_key(name: str) -> str:
    """What names of the same thing share: words in alphabetical order, without regard to case, accents and spelling."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    for british, american in SPELLINGS:
        plain = plain.replace(british, american)
    words = [ROMAN.get(word, word) for word in re.findall(r"[a-z0-9]+", plain)]
    return " ".join(sorted(word for word in words if word not in FILLERS))


def title_keys(title: str) -> Iterator[str]:
    """Keys of a title, also without what stands in brackets and of what stands there."""
    yield name_key(title)
    if match := re.fullmatch(r"(.+?) \((.+)\)", title):
        yield name_key(match[1])
        yield name_key(match[2])


def taken_names(output: Path) -> set[str]:
    """Keys of all titles in the other files of the output's folder."""
    keys: set[str] = set()
    for path in sorted(output.parent.glob("*.jsonl")):
        if path.resolve() != output.resolve():
            with path.open(encoding="utf-8") as file:
                for line in filter(str.strip, file):
                    keys.update(title_keys(json.loads(line)["title"]))
    return keys - {""}


def is_taken(names: Iterable[str], taken: set[str]) -> bool:
    """Whether an article has one of these names."""
    return any(name_key(name) in taken for name in names if name)


def disease_pages(rows: Iterable[Row], taken: set[str]) -> Iterator[Page]:
    """Pages of the diseases that have no article."""
    for row in rows:
        names = [row["name"], *row["synonyms"].split("|"), *row["acronyms"].split("|")]
        if not is_taken(names, taken):
            url = f"https://disease-ontology.org/?id={row['doid']}"
            title = upper_first(row["name"])
            yield {"id": row["doid"], "title": title, "url": url, "text": disease_text(row)}


def gene_pages(rows: Iterable[Row], taken: set[str]) -> Iterator[Page]:
    """Pages of the genes that have no article."""
    rows = list(rows)
    bands = defaultdict(list)
    for row in rows:
        bands[row["band"]].append(row["symbol"])
    for row in rows:
        if not is_taken([row["symbol"], row["symbol_2015"], row["name"], *row["aliases"].split("|")], taken):
            others = [symbol for symbol in bands[row["band"]] if symbol != row["symbol"]]
            url = f"https://www.ncbi.nlm.nih.gov/gene/{row['gene_id']}"
            text = gene_text(row, others)
            yield {"id": f"gene-{row['gene_id']}", "title": row["symbol"], "url": url, "text": text}


def fit_pages(pages: Iterable[Page]) -> Iterator[Page]:
    """Pages of a good length; of pages with the same title the first."""
    seen: set[str] = set()
    for page in pages:
        key = page["title"].casefold()
        if MIN_WORDS <= len(page["text"].split()) <= MAX_WORDS and key not in seen:
            seen.add(key)
            yield {field: unicodedata.normalize("NFC", value) for field, value in page.items()}


def write_pages(pages: Iterable[Page], output: Path) -> None:
    """Write all or nothing."""
    part = output.with_name(output.name + ".part")
    lines = "".join(json.dumps(page, ensure_ascii=False) + "\n" for page in pages)
    part.write_text(lines, encoding="utf-8", newline="\n")
    part.replace(output)


def main(tables: Path, output: Path) -> None:
    """Write the pages of the folder ``tables``: diseases with a gene, other diseases, genes."""
    taken = taken_names(output)
    diseases = sorted(read_table(tables / "diseases.tsv"), key=lambda row: (not row["gene"], row["doid"]))
    pages = [*disease_pages(diseases, taken), *gene_pages(read_table(tables / "genes.tsv"), taken)]
    write_pages(fit_pages(pages), output)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_pages.py OUTPUT.jsonl")
    main(Path(__file__).parent, Path(sys.argv[1]))
