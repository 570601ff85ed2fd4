"""Text folding for comparisons, and a sentence splitter for biomedical prose.

Nothing made here is ever shown to a user, except sentences and the output of :func:`tidy`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_SUPERSCRIPT: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_GREEK_NAMES: Final = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau "
    "upsilon phi chi psi omega"
)
_GREEK: Final = dict(zip("αβγδεζηθικλμνξοπρστυφχψω", _GREEK_NAMES.split(), strict=True))
# Letters that Unicode does not decompose into a base letter and a mark.
_UNDECOMPOSED: Final = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ð": "d", "ı": "i"})
_QUOTES: Final = str.maketrans(dict.fromkeys("‘’‚‛′`´ʹʼ＇", "'") | dict.fromkeys("“”„‟″«»＂", '"'))

_EXPONENT = re.compile(rf"(?<=\d)[⁻⁺]?[{_SUPERSCRIPT}]+")
_VULGAR_AFTER_DIGIT = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_GREEK_RUN = re.compile(r"[α-ω]+")
_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d,]*\d)")
_PERCENT = re.compile(r"%|\bper\s?cent\b|\bpercentage\b")
_ARTICLE = re.compile(r"(?:[Tt]he|THE|[Aa]n|a)\s+(?=\S)")
# Kept as they are: letters, digits, decimal points, a leading minus, exponents, plus signs of ions and cell
# markers, comparison signs, the percent sign. All other punctuation separates tokens.
_TOKEN = re.compile(
    r"""
    (?:(?<![^\s(])-(?=\d))?                       # a minus sign, not a hyphen
    (?: \d+/\d+ (?![^\W_])                       # a fraction
      | [^\W_]+ (?:(?<=\d)\.\d+[^\W_]*)*         # a word, number or cytogenetic band
        (?:(?<=\d)\^-?\d+)? \+?                  # an exponent; the sign of an ion or cell marker
    )
    | [%<>≤≥]
    """,
    re.VERBOSE,
)


def word_set(text: str) -> frozenset[str]:
    """A set of words that is written as a line of text."""
    return frozenset(text.split())


def tidy(text: str) -> str:
    """Make text presentable: composed letters, no invisible characters, single spaces.

    Spelling, case and punctuation stay as they are.
    """
    text = "".join(" " if c in "\t\n\r\x0b\x0c" else c for c in text)
    text = "".join(c for c in text if unicodedata.category(c) not in {"Cf", "Cc"})
    return " ".join(unicodedata.normalize("NFC", text).split())


def fold(text: str) -> str:
    """Lower case, ASCII dashes and quotes, no diacritics or invisible characters; Greek letters stay.

    An exponent after a digit becomes ``^n``: compatibility folding alone would turn 10⁵ into 105.
    """
    text = _EXPONENT.sub(lambda m: "^" + unicodedata.normalize("NFKC", m[0]).replace("−", "-"), text)
    text = unicodedata.normalize("NFKC", _VULGAR_AFTER_DIGIT.sub(" ", text)).translate(_QUOTES).replace("⁄", "/")
    text = "".join("-" if c == "−" or unicodedata.category(c) == "Pd" else c for c in text)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    text = unicodedata.normalize("NFD", text.casefold())
    # Only the marks of European scripts: elsewhere a mark can be a letter.
    text = "".join(c for c in text if not "\u0300" <= c <= "\u036f")
    return " ".join(unicodedata.normalize("NFC", text).translate(_UNDECOMPOSED).split())


def spell_greek(folded: str) -> str:
    """Write single Greek letters by name, each as a token of its own; Greek words stay."""
    return _GREEK_RUN.sub(
        lambda m: m[0] if len(m[0]) > 3 else " " + " ".join(_GREEK.get(c, "sigma") for c in m[0]) + " ", folded
    )


def plain_digits(folded: str) -> str:
    """Remove thousands separators: 1,300 becomes 1300, while 1,2-dichloroethane stays."""
    return _THOUSANDS.sub(lambda m: m[1] + m[2].replace(",", ""), folded)


def tokens(text: str) -> list[str]:
    """Comparable tokens of a text: case, dashes, diacritics, Greek and number format no longer matter.

    Decimal points, leading minus signs, exponents, ``+``, ``%`` and comparison signs are kept.
    """
    folded = plain_digits(spell_greek(fold(text)))
    folded = _PERCENT.sub(" % ", folded).replace("'", "").replace("&", " and ")
    return _TOKEN.findall(folded)


def strip_article(text: str) -> str:
    """Remove a leading article of a longer string; a lone capital ``A`` is a name, as in ``A antigen``."""
    return _ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text


def normalise(text: str) -> str:
    """The lenient comparison form of free text: its tokens, without a leading article, joined by spaces.

    Empty when the text holds no letter, digit or kept sign.
    """
    return " ".join(tokens(strip_article(text.strip())) or tokens(text))


def compact(parts: Iterable[str]) -> str:
    """Join tokens without spaces, but never two digits: IL-2 gives il2, and 1-2 stays apart from 12."""
    joined = ""
    for part in parts:
        joined += "-" + part if joined[-1:].isdigit() and part[:1].isdigit() else part
    return joined


_BREAK = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[^\W_])|\n\s*\n")
_NEVER_LAST = re.compile(
    r"(?:^|[\s(\[\"'])(?:e\.g|i\.e|cf|ca|approx|vs|viz|figs?|eqs?|refs?|pp|vol|var|subsp|drs?|mrs?|ms|prof|st|resp)\.$",
    re.IGNORECASE,
)
_SELDOM_LAST = re.compile(
    r"(?:^|[\s(\[\"'])(?:[A-Za-z]|etc|al|spp?|jr|sr|inc|ltd|co|dept|univ|(?:[A-Za-z]\.)+[A-Za-z])\.$", re.IGNORECASE
)
_NUMBER_SIGN = re.compile(r"(?:^|[\s(])nos?\.$", re.IGNORECASE)
_OPENER = re.compile(
    r"[\"'(\[]?(?:The|An?|This|That|These|Those|It|Its|They|There|In|On|At|As|If|For|From|With|While|When|However|"
    r"Although|But|Both|Each|Most|Many|Some|Such|Other|Symptoms|Patients|People|Mutations|He|She|We|His|Her|"
    r"What|Which|Who|Where|How|Is|Are|Was|Does|Do|Can|Could|Would|Will)\b"
)


def _is_break(before: str, after: str) -> bool:
    """Whether a sentence ends between the two texts, the first of which ends with a sentence mark."""
    before = before[-16:]
    if _NEVER_LAST.search(before):
        return False
    if _SELDOM_LAST.search(before):
        # 'E. coli' and 'J. Smith' go on; 'hepatitis B. The' does not.
        return _OPENER.match(after) is not None
    if _NUMBER_SIGN.search(before) and after[:1].isdigit():
        return False
    # An English sentence starts with a capital or a digit.
    return not after.lstrip("\"'([")[:1].islower()


def sentences(text: str) -> list[str]:
    """Split prose into sentences, as written, in order, none empty.

    Full stops of abbreviations, initials, species names, decimals and cytogenetic bands do not end one.
    """
    found: list[str] = []
    start = 0
    for match in _BREAK.finditer(text):
        if "\n" not in match[0] and not _is_break(text[start : match.start()] + match[0].rstrip(), text[match.end() :]):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [s for s in found if s]
