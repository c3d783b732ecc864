"""Splits texts into words, so that quotations can be compared regardless of typography. Pure.

A word is the smallest unit that a quotation may not split: `1,200`, `10-20`, `m³/h`, `non-flammable`. Signs
that carry meaning are words as well: a minus, a comparison, a currency, the parenthesis of a negative amount.
Everything else (quotation marks, bullets, cell borders, emphasis) separates words and is recorded as the
border between them.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from shared.evidence.text import ends_with_stop, sentence_ends


class Border(IntEnum):
    """The strongest separator between a word and the one before it. Values are ordered from weak to
    strong.
    """

    NONE = 0
    CLAUSE = 1
    """A comma, a dash, a parenthesis, the border of a cell."""
    LINE = 2
    """The end of a line, unless a sentence clearly continues on the next line."""
    STRONG = 3
    """A colon or a semicolon."""
    SENTENCE = 4
    """The end of a sentence or of a row."""
    PARAGRAPH = 5
    """The end of a paragraph or list item. The text that follows may be elsewhere on the page."""


class Joint(IntEnum):
    """The kind of separator between two words of a quotation. A quotation may omit words only where there is
    one.
    """

    NONE = 0
    SIGN = 1
    """A punctuation mark or a line break, where sentences, rows or list items may have been joined."""
    ELLIPSIS = 2
    """An ellipsis, which marks omitted words."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word, its position in the text and its normalised spellings.

    Attributes:
        keys: normalised spellings. Two words are equal if they share a key.
        start, end: offsets in the text.
    """

    keys: tuple[str, ...]
    start: int
    end: int
    border: Border = Border.NONE
    joint: Joint = Joint.NONE

    @property
    def key(self) -> str:
        return self.keys[0]

    @property
    def is_number(self) -> bool:
        return self.key[0].isdigit() or self.key[0] == "."

    @property
    def is_unit(self) -> bool:
        """Whether the word is a unit, or a scale such as "million", when it follows a number."""
        return self.key in _UNIT_SIGNS or _is_unit(self.key.lower())

    @property
    def is_prefix(self) -> bool:
        """Whether the word is a sign that belongs to the number after it, such as a minus, so that omitting
        it would change the number.
        """
        return self.key in _PREFIXES

    @property
    def is_negation(self) -> bool:
        return self.key in _NEGATIONS or self.key.endswith("n't")


_UNITS = frozenset(
    """mm cm dm m km μm nm inch inches ft feet yd mile miles mi g kg mg μg t lb lbs oz ton tons tonne tonnes
    ms s sec seconds min minute minutes h hr hrs hour hours day days week weeks month months year years bar
    mbar psi pa hpa kpa mpa gpa v kv mv ma w kw mw gw wh kwh mwh gwh hz khz mhz ghz rpm l ml cl dl hl
    gal k n kn nm j kj mj db lm lx mol ppm bit bits byte bytes kb mb gb tb px pt dpi percent pct prozent
    million millions billion billions trillion thousand hundred dozen mio mrd tsd mn bn bps eur usd gbp
    chf jpy euro euros dollar dollars cent cents pounds tage tagen wochen monate monaten jahre jahren
    stunden minuten sekunden meter meters metres liter liters litres gramm tonnen grad degrees times
    fold""".split()
)
_UNIT_SIGNS = frozenset(("%", "‰", "°", "°c", "°f", "°k", "′", "″"))
# the part before `/`, digits or signs, such as `m` in `m3/h` or `s` in `s-1`
_UNIT_BASE = re.compile(r"[^/·\d^-]*")


def _is_unit(key: str) -> bool:
    base = _UNIT_BASE.match(key)
    return base is not None and base[0] in _UNITS


_CURRENCIES = "$€£¥¢₹₽₩₺฿₫₪₦₴₱"
_PREFIXES = frozenset("-+±∓~≈<>≤≥≠(" + _CURRENCIES)
EXCEPTIONS = frozenset(
    "unless except excepting excluding außer ausgenommen sauf excepté salvo excepto tranne eccetto".split()
)
_NEGATIONS = EXCEPTIONS | frozenset(
    """no not never without nor neither none nobody nothing nowhere cannot hardly
    kein keine keinen keinem keiner keines nicht nichts nie niemals niemand ohne weder ne pas jamais
    aucun aucune sans ni nunca sin ningún ninguna ninguno senza nessun nessuna non 不 没 無 无
    未 非""".split()
)

# Combining marks that NFC leaves separate: accents, Hebrew and Arabic points, Indic vowel signs.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u109f"
)
_L = rf"(?:[^\W_]++|[⁺⁻{_MARKS}]++)++"
_BREAK = r"[-‐\x02\ufffe][ \t]*\r?\n[ \t]*(?=[^\W\d_])|[\x02\ufffe][ \t]*\n?[ \t]*(?=[^\W\d_])"
_CONNECTED = "|".join(
    (
        _BREAK,
        r"(?<=\d)(?:[-‐‑‒–—−\x02\ufffe]\s?|\s[-‐‑‒–—−]\s)(?=\d)",  # a range with any spacing
        r"(?<=\d)[,:'’](?=\d)",
        r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))",
        r"['’ʼ‐‑–&@·_/⁄-](?=[^\W_])",
        r"(?<![a-zß-ÿ\d])\.(?=[^\W_])|\.(?=[^\W_A-ZÀ-Þ])",  # not where a space is missing, as in `end.Next`
        r"\^[-+−]?(?=\d)",
    )
)
_SPACED_GROUP = r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d])|\d+ \d+[/⁄]\d+(?!\d)|"
_NUMBER_AHEAD = rf"\s?[{_CURRENCIES}]?\s?\.?\d"
_SIGNS = "|".join(
    (
        rf"[-−–‒](?=[{_CURRENCIES}]?\.?\d)|(?<=\S[ ])[-−–‒](?=[ ]\d)",  # a minus sign, as opposed to a bullet
        rf"[<>≤≥≈~±∓+≠](?={_NUMBER_AHEAD})",
        rf"\((?=\s?[{_CURRENCIES}]?\s?\d[\d.,'’ ]*+\s?%?[\s|]*\))",  # a negative amount
        r"\[(?=\s?[^\W_])",  # an editor's insertion
        r"°\s?[CFK]?(?![^\W_])",
        r"(?<!=)=(?!=)",
        rf"[%‰§&@×÷∞√→←′″✓✔✗✘☐☑☒{_CURRENCIES}]",
    )
)
_ELLIPSIS = re.compile(r"…|\.{3}|\. \. \.")
_WORD_TAIL = r"(?:\+{1,2}|#|-(?=[\s.,;:)]|\Z))?+(?![^\W_])"


def _pattern(numbers: str) -> re.Pattern[str]:
    word = rf"(?:{numbers}(?:(?<![\d.])\.(?=\d))?{_L}(?:(?:{_CONNECTED}){_L})*+)(?:{_WORD_TAIL})?"
    return re.compile(rf"(?P<word>{word})|{_SIGNS}")


_GROUPED = _pattern(_SPACED_GROUP)
_UNGROUPED = _pattern("")

_SOFT_BREAK = re.compile(r"\u00ad[ \t]*\r?\n[ \t]*")
_RAISED = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿ①-⒛⓪-⓿❶-➓]+")
_FOOTNOTE = re.compile(f"(?<=[^\\W\\d_])(?:{_RAISED.pattern})$")
_LOWERED_AFTER_DIGIT = re.compile(r"(?<=\d)(?=[₀-₉])")
_FRACTION_AFTER_DIGIT = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅟↉])")
_SHORT_UNIT = 2  # maximum length of a unit: `km²` is a unit, but the `²` of `Sales²` is a footnote mark
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_IDEOGRAPHS = re.compile(f"[{_IDEOGRAPH}]|[^{_IDEOGRAPH}]+")
_GLUED_UNIT = re.compile(r"(\d[\d.,]*)([^\W\d_].*)")
_UNIFIED = str.maketrans({**dict.fromkeys("‐‑‒–—−\x02\ufffe", "-"), "’": "'", "ʼ": "'", "⁄": "/"})
_BROKEN = re.compile(_BREAK)
_BLANKS = re.compile(r"\s+")
_LABEL = r"\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)][ \t]"
_LABEL_AT_START = re.compile(rf"^[ \t]*(?:[-*•] )?{_LABEL}", re.MULTILINE)
_NEW_PARAGRAPH = re.compile(rf"\n\s*\n|\n[ \t]*(?:[-*+•·▪◦‣●○■□►][ \t]|{_LABEL}|#{{1,6}} )")
_LABEL_CHARS = 8
_LABEL_END = re.compile(r"(?:(?<![^\W_.])[A-Z]|\d)\.\s+[A-Z]")  # `Exhibit A. The`, or only `J. Smith`
_CLAUSE_SIGN = re.compile(r"[,()\[\]|—–/]|\s-\s")


def shown_form(text: str) -> str:
    """Return the text in Unicode NFC without invisible characters. Search, display and comparison all use
    this form.
    """
    composed = unicodedata.normalize("NFC", _SOFT_BREAK.sub("", text))
    if composed.isascii():
        return composed
    return composed.translate(
        {ord(sign): None for sign in set(composed) if unicodedata.category(sign) == "Cf"}
    )


def block_words(text: str) -> list[Word]:
    """Split the text of a block into words and determine the border before each. `text` must come from
    `shown_form`.
    """
    # a quotation may omit list labels such as `2.`
    labels = [label.end() for label in _LABEL_AT_START.finditer(text)]
    sentences = [end for end in sentence_ends(text) if ends_with_stop(text[:end])]
    ends = sorted((*labels, *sentences, len(text)))

    def border(reached: int, start: int) -> Border:
        ends_sentence = ends[bisect_left(ends, reached)] <= start
        return max(Border.SENTENCE if ends_sentence else Border.NONE, _border(text, reached, start))

    words: list[Word] = []
    for keys, start, end in _read(text, _GROUPED):
        words.append(Word(keys, start, end, border(words[-1].end, start) if words else Border.PARAGRAPH))
    return words


def _border(text: str, reached: int, start: int) -> Border:
    """Return the border between a word that ends at offset `reached` and one that starts at `start`. The
    caller handles sentence ends.
    """
    between = text[reached:start]
    if between == " ":
        return Border.NONE
    if "\n" in between:
        new = _NEW_PARAGRAPH.search(text, reached, start + _LABEL_CHARS)
        if new is not None and new.start() in range(reached, start):
            return Border.PARAGRAPH
        if "|" in between:
            return Border.SENTENCE
    if ":" in between or ";" in between:
        return Border.STRONG
    if "\n" in between and not text[start].islower():
        return Border.LINE
    is_clause = _CLAUSE_SIGN.search(between) or _LABEL_END.match(text, reached - 1)
    return Border.CLAUSE if is_clause else Border.NONE


def quoted_words(text: str, *, groups_digits: bool = True) -> list[Word]:
    """Split a quotation into words and record the separator before each. `text` must come from `shown_form`.

    Args:
        groups_digits: whether `1 500` is one number; otherwise the space separates two cells.
    """
    words: list[Word] = []
    reached = 0
    for keys, start, end in _read(text, _GROUPED if groups_digits else _UNGROUPED):
        between = text[reached:start]
        is_signed = bool(between.strip()) or "\n" in between
        joint = Joint.ELLIPSIS if _ELLIPSIS.search(between) else Joint.SIGN if is_signed else Joint.NONE
        words.append(Word(keys, start, end, joint=joint))
        reached = end
    return words


def _read(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield the comparison keys, start offset and end offset of each word that matches `pattern`."""
    last = ""
    for match in pattern.finditer(text):
        raw, start = match[0], match.start()
        if match["word"] is None:
            last = "".join(raw.lower().split()).translate(_UNIFIED)
            yield (last,), start, match.end()
            continue
        for part, at in _parts(raw, start):
            keys = _keys(part, last)
            if keys:
                yield keys, at, at + len(part)
                last = keys[0]


def _parts(raw: str, start: int) -> list[tuple[str, int]]:
    """Split a number from its unit, as in `5kg`, and ideographs from each other. Return the parts with their
    offsets.
    """
    if (glued := _GLUED_UNIT.fullmatch(raw)) and _is_unit(glued[2].lower()):
        return [(glued[1], start), (glued[2], start + glued.start(2))]
    if raw.isascii():
        return [(raw, start)]
    return [(part[0], start + part.start()) for part in _IDEOGRAPHS.finditer(raw)]


def _keys(raw: str, last: str) -> tuple[str, ...]:
    """Return the comparison keys of a word, one for each accepted spelling. A lone footnote mark has none.
    `last` is the key of the word before.
    """
    if raw.isascii() and " " not in raw and "\n" not in raw:
        return (_cased(raw, last),)
    if _RAISED.fullmatch(raw):
        return (f"^{unicodedata.normalize('NFKC', raw)}",) if last[-1:].isdigit() else ()
    forms = [raw]
    if _BROKEN.search(raw):
        forms = [_BROKEN.sub("", raw), _BROKEN.sub("-", raw)]
    elif (mark := _FOOTNOTE.search(raw)) and not (mark.start() <= _SHORT_UNIT and last[-1:].isdigit()):
        forms.append(raw[: mark.start()])
    return tuple(_cased(_unified(form), last) for form in forms)


def _unified(raw: str) -> str:
    """Apply NFKC normalisation, but keep 10² distinct from 102 and 1½ from 11/2."""
    marked = _LOWERED_AFTER_DIGIT.sub("_", _FRACTION_AFTER_DIGIT.sub(" ", raw))
    marked = _RAISED.sub(
        lambda match: ("^" if marked[: match.start()][-1:].isdigit() else "") + match[0], marked
    )
    unified = unicodedata.normalize("NFKC", marked).translate(_UNIFIED)
    return re.sub(r" ?- ?", "-", _BLANKS.sub(" ", unified))


def _cased(form: str, last: str) -> str:
    """Fold the case of a word, unless it is a unit after a number: 5 mW is not 5 MW."""
    lower = form.lower()
    return form if last[-1:].isdigit() and len(form) <= 3 and lower in _UNITS else lower
