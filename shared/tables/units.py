"""Units in the lines and headers of tables, such as "in thousand EUR", "en milliers d'euros" or "Mio. €".
Pure.
"""

import re

from shared.evidence.number_words import AMBIGUOUS_SCALES, CURRENCY, SCALE_NAMES

_SCALE = "|".join(sorted(map(re.escape, SCALE_NAMES), key=len, reverse=True))
_THOUSAND = r"1[.,'’]?000|[/'’]?000s?"
_MONEY = (
    rf"{CURRENCY}|[¥₹]|r\$|jpy|cny|cad|aud|czk|huf|inr|brl|euro['’]s|dollar[is]?|dollaro|dólare?s|pounds?|pfund"
    r"|sterling|francs?|franken|franchi|francos|kron(?:en|or|er|a|e)|reais|złot(?:e|y|ych)|yen"
    r"|%|percent|prozent|percento|procent"
)
_SCALED = re.compile(rf"(?:{_SCALE}|{_THOUSAND})")
_VALUED = re.compile(rf"(?:d['’]|us-?|t|{_SCALE})?(?:{_MONEY})-?(?:{_SCALE}|{_THOUSAND})?")
_JOINING = frozenset(
    "us of and or und et de di du von van per share cent data amounts hele full whole & -".split()
)
_PREPOSITIONS = frozenset("in en em w à x i".split())
_EXCEPTION = re.compile(
    r"[,\s](?:except|unless|excluding|sauf|hors|sofern|soweit|außer|salvo|tranne|tenzij)\b.*", re.IGNORECASE
)
# Words before a unit that don't name the contents of a table.
_GENERAL = frozenset(
    "all amounts amount figures values numbers data expressed stated shown presented unit units currency"
    " alle angaben angabe beträge werte zahlen sämtliche einheit währung"
    " tous les montants montant chiffres données valeurs exprimés unité unités"
    " todos los las importes cifras valores datos expresados expresadas unidad"
    " tutti gli importi valori dati espressi unità os montantes expressos bedragen cijfers waarden"
    " alla belopp siffror värden beløb beløp tal tall kwoty dane wartości".split()
)
_BRACKETS = "()[]"
_MAX_UNIT_CHARS = 200


def split_unit(line: str) -> tuple[str, str]:
    """Split a line above a table into its title and the unit at its end. Each of them may be "".

    Examples: "Sales by region (in k€)" has the title "Sales by region"; "All amounts in US$" has none.
    """
    line = re.sub(r"\b1\s000\b", "1000", line.strip())
    words = _EXCEPTION.sub("", line).split()
    start = len(words)
    while start and _is_unit_word(words[start - 1]):
        start -= 1
    units = [_core(word) for word in words[start:]]
    has_preposition = start > 0 and _core(words[start - 1]) in _PREPOSITIONS
    is_apart = start == 0 or (bool(units) and words[start][0] in _BRACKETS)
    is_amount = any(unit[0].isdigit() for unit in units if unit)
    is_unit = any(map(_VALUED.fullmatch, units)) or any(map(_is_plain_scale, units))
    if has_preposition:
        is_unit = is_unit or any(map(_SCALED.fullmatch, units))
        start -= 1
    if not is_unit or not (has_preposition or (is_apart and not is_amount)):
        return line, ""
    title = " ".join(words[:start]).strip(f"{_BRACKETS},;:-– ")
    if all(_core(word) in _GENERAL or _is_unit_word(word) for word in title.split()):
        title, start = "", 0
    return title, line.split(maxsplit=start)[-1].strip(f"{_BRACKETS}: ")


def is_unit(text: str) -> bool:
    """Return whether a text consists of a unit. The end of a wrapped line, such as "millions):", doesn't."""
    if len(text) > _MAX_UNIT_CHARS:
        return False
    title, unit = split_unit(text)
    return bool(unit) and not title and text.count("(") == text.count(")")


def _is_unit_word(word: str) -> bool:
    core = _core(word)
    return core in _JOINING or any(pattern.fullmatch(core) for pattern in (_SCALED, _VALUED))


def _is_plain_scale(core: str) -> bool:
    return len(core) > 2 and core in SCALE_NAMES and core not in AMBIGUOUS_SCALES


def _core(word: str) -> str:
    return word.strip(f"{_BRACKETS},:;").replace(".", "").casefold()
