"""Words for scales, periods and decreases in the languages of answers. Pure.

English and German words apply in every language, because tables and questions often contain them. The words
of another language apply to answers in that language only: Spanish "mil" is a thousand, but in English it
abbreviates "million".
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

_GERMAN = ("zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf")
_ENGLISH = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBER_WORDS = {word: number for words in (_GERMAN, _ENGLISH) for number, word in enumerate(words, 2)}
_NUMBER_WORD_LANGUAGES = ("en", "de")

_SCALES = {
    3: "k, thousand, thousands, thsd, tausend, tsd",
    6: "m, mn, million, millions, millionen, mio, mill",
    9: "b, bn, billion, billions, mrd, milliarde, milliarden",
    12: "trillion, trillions",
}
"""Names of powers of ten, in any language."""
_SCANDINAVIAN = {
    3: "tusen, tusental, tusind, tusinde, tkr",
    6: "miljon, miljoner, million, millioner, mnkr, mkr",
    9: "miljard, miljarder, milliard, milliarder, mdr, mia, mdkr",
    12: "biljon, biljoner, billion, billioner",
}
_MORE_SCALES = {
    "de": {12: "billion, billionen"},
    "fr": {3: "mille, millier, milliers", 9: "milliard, milliards, md, mds", 12: "billion, billions"},
    "it": {
        3: "mille, mila, migliaio, migliaia",
        6: "milione, milioni, mln",
        9: "miliardo, miliardi, mld",
        12: "bilione, bilioni, mille miliardi",
    },
    "es": {
        3: "mil, miles",
        6: "millón, millones",
        9: "mil millones, miles de millones, millardo, millardos",
        12: "billón, billones",
    },
    "pt": {
        3: "mil, milhares",
        6: "milhão, milhões",
        9: "mil milhões, milhares de milhões, bilhão, bilhões",
        12: "trilhão, trilhões, bilião, biliões",
    },
    "nl": {
        3: "duizend, duizenden",
        6: "miljoen, miljoenen, mln",
        9: "miljard, miljarden, mld",
        12: "biljoen",
    },
    "pl": {
        3: "tys, tysiąc, tysiące, tysięcy, tysiącach",
        6: "mln, milion, miliony, milionów, milionach",
        9: "mld, miliard, miliardy, miliardów, miliardach",
        12: "bln, bilion, biliony, bilionów",
    },
    **dict.fromkeys(("sv", "da", "nb", "nn", "no"), _SCANDINAVIAN),
}
"""The same in the language of an answer, by ISO 639-1 code. They override those of `_SCALES`."""
AMBIGUOUS_SCALES = frozenset("bln billion billions md mdr mds mia mil mila miles mille".split())
"""Words that mean something else in other languages, such as "miles" in English."""

CURRENCY = r"[€$£]|euros?|eur|us\$|usd|gbp|chf|sek|nok|dkk|kr|pln|zł"
"""Matches signs and codes of currencies, in lower case."""
# Notations of a thousand in labels: TEUR, T€, "in 1.000 EUR", "x € 1.000", $'000.
_THOUSANDS = (
    rf"t\s?(?:{CURRENCY})|1[.,'’\s]?000\s?(?:{CURRENCY})|(?:{CURRENCY})[\s/]?(?:1[.,]|['’])?000s?|['’]000s?"
)

SCALE_NAMES = frozenset(
    name
    for scales in (_SCALES, *_MORE_SCALES.values())
    for names in scales.values()
    for name in names.split(", ")
)
"""Names of powers of ten in all languages."""

_PERIOD_NOUN = (
    r"quarters?|months?|weeks?|days?|years?|half|halves|decades?"
    r"|(?:geschäfts|kalender|wirtschafts|haushalts|halb)?jahre?n?|quartale?n?|monate?n?|wochen?|tage?n?"
    r"|jahrzehnten?"
)
_PERIOD = re.compile(
    r"\b(?:(?:first|last|past|previous|prior|preceding|next|coming|following|all|erste[nr]?|letzte[nr]?"
    r"|vergangene[nr]?|vorige[nr]?|vorangegangene[nr]?|nächste[nr]?|kommende[nr]?|alle[nr]?)"
    rf"\s(?:{'|'.join(NUMBER_WORDS)})[\s-](?:(?:full|fiscal|financial|calendar|business)\s)?(?:{_PERIOD_NOUN})"
    r"|twelve[\s-]months?|four[\s-]quarters?|zwölf\smonaten?|vier\squartalen?)\b",
    re.IGNORECASE,
)

_UNITS = (
    r"(?:(?:%|[€$£]|eur|euros?|usd|dollars?|kr\.?|percent|prozent\w*|procent\w*|prosent\w*|points?|punkte|mio\.?|mrd\.?"
    r"|tsd\.?|millione?[nr]?|milliarden|miljoner|billion|tausend|thousand|stück)\s){0,2}"
)
_TARGETS = (
    r"\w{0,30}(?:plan(?:en|et|s|wert\w*|zahl\w*)?\b|geplant|veranschlagt|ziel|soll\b|sollwert|budget|vorjahr|durchschnitt"
    r"|schnitt\b|erwart|niveau|null\b|zero\b|vorgabe|prognos|ansatz|schwelle|grenzwert|wert\b|target|forecast"
    r"|average|expect|guidance|last\syear|(?:prior|previous)\syear|mål|genomsnitt|gjennomsnitt|gennemsnit|förvänt"
    r"|forvent|noll\b|nul\b|budsjett)"
)
"""Matches values that another value is compared with."""
_BELOW = (
    # "unter" and "under" also mean "among" and "during". Near a number or target they mean less.
    rf"un[td]er\s(?:(?:the|its|our|their|de[mnrt]|die|das|ihre[mnr]|seine[mnr]|unsere[mnr]|sitt?|sin)\s)?{_TARGETS}"
    rf"|\d\S{{0,20}}\s{_UNITS}unter\s(?!ander|alle|de[mnr]\b|die|das|jede)"
    r"|(?:lieg|lag|bleib|blieb)\w{0,9}\b[^.]{0,60}\bunter\s(?!ander|allen\b|den\b|diesen\b|ihnen\b|beiden\b)"
)
_DECREASES = (
    # English
    rf"\b(?:{_BELOW}|under(?:perform|sho|spen|run\b|util|deliver|achiev|cut)"
    r"|fell\b|fall|drop|decreas|declin|loss|lost\b|less\b|lower|fewer|below|behind"
    r"|minus|negati|down\b|downturn|reduc|short|deficit|miss(?:ed|es|ing)?\b|gaps?\b|trail(?:s|ed|ing)?\b|wors"
    r"|shr[aiu]nk"
    # German
    r"|gesunken|s[aiu]nk|weniger|niedriger|geringer|unterhalb|unterschr(?:eit|itt)|unterdeck|untertr[aof]|darunter"
    r"|gefallen|fiel(?:en)?\b|abgenommen|abnahm|abnehm|nahm(?:en)?\b[^.]{0,80}\bab\b"
    r"|nimmt\b[^.]{0,80}\bab\b|verringer|verminder|fehl(?!er)|verfehl|hinter\b|dahinter|hinterher|schlechter"
    r"|verschlechter|minder(?!heit|jähr)|zurück(?:\b|gegang|ging|geh|geblieb|blieb|bleib|gefallen|fiel|fall)"
    r"|schrumpf|geschrumpft|gesenkt|senk(?!r)|kürz|gekürzt)"
    # German nouns, often as the last part of a compound
    r"|rückgang|rückgäng|verlust|defizit|fehlbetr|lücke|einb[uü](?:ß|ss)|minderung"
)
"""Words that give a number a negative meaning: "it fell by 45" is -45."""
_SCANDINAVIAN_DECREASES = (
    rf"\b(?:(?:ligger|låg|lå|är|er|var)\s\d\S{{0,20}}\s{_UNITS}under\s(?!\d|de[nt]?\b|år|period|kvartal|månad|måned|hel[ae]\b"
    r"|först|først|andra|anden|tredje|fjärde|fjerde|vår|sommar|sommer|höst|høst|vinter)"
    r"|mindre|minsk|lägre|laver|sj[uö]nk|synk|sank|föll|fald|falt\b|förlust|tab(?:et|t|te)?\b|tap(?:et|t|te)?\b"
    r"|tapp|nedgång|nedgang|tilbagegang|tilbakegang|underskott|underskud|bakom|bak\b|bag\b|bagud|bagefter|sämre"
    r"|dårliger|brist|mangl|redus|försäm|forverr|forringe)"
)
_MORE_DECREASES = {
    "en": rf"\b\d\S{{0,20}}\s{_UNITS}under\s(?!the\b|th[ie]s|that|an?\b|our\b|its\b|their\b)",
    "de": "",
    "fr": (
        r"\b(?:(?<!au )moins\b|inférieur|moindre|baiss|recul|chut|dimin|pertes?\b|perd(?:u|re|ant)?e?s?\b"
        r"|déficit|manqu|en dessous|en-dessous|au-dessous|sous\b(?!-)|retard|négati|rédui|réduc|repli\b)"
    ),
    "it": (
        r"\b(?:sotto\b|meno\b|inferior|minore\b|minori\b|cal(?:o|i|a|at[oaie]|ano|ando|are|ò|arono)\b|diminu"
        r"|perdit|pers[oaie]\b|perd(?:e|ono|uto|ut[aei])\b|mancat|mancan|manca\b|ridott|ridu[cz]|disavanzo"
        r"|ritardo|sces[oaie]\b|scend|discesa|flession|peggior|contrazion)"
    ),
    "es": (
        r"\b(?:debajo|(?<!al )(?<!lo )menos\b|inferior|menor(?:es)?\b|baj(?:a|as|o|ó|ar|aron|ado|ada|ando)\b"
        r"|cay(?:ó|eron|endo)\b|ca(?:e|en|er)\b|caíd|dismin|reduj|pérdid|perdi|déficit|falt(?:a|an|ó|aron|aba)\b"
        r"|retroce|descen|retras|merm)"
    ),
    "pt": (
        r"\b(?:abaixo|(?<!pelo )(?<!ao )menos\b|inferior|menor(?:es)?\b|queda|ca(?:i|iu|em|ir|íram|ído|ída)\b"
        r"|baix(?:a|as|o|ou|ar|aram)\b|diminu|redu[zç]|perd(?:a|as|eu|eram|er|ido|ida)\b|prejuízo|défice"
        r"|déficit|falt(?:a|am|ou|aram|ava)\b|recuo|recuou|recuaram|retra|desce|atras)"
    ),
    "nl": (
        r"\b(?:minder|onder\b|lager|da(?:al|len|ling)|gedaald|verlies|verlie[sz]|verloor|verloren|tekort|afname"
        r"|afgenomen|afnam|n[ae]emt?\b[^.]{0,80}\baf\b|nam(?:en)?\b[^.]{0,80}\baf\b|achter\b|achterst|krimp"
        r"|gekrompen|zak(?:t|ken|te)\b|gezakt|vermind|min\b|slechter)"
    ),
    "pl": (
        r"\b(?:mniej|niż(?:sz|ej)|poniżej|spad(?:e?k|ł|a|l)|zmniejsz|zmala|obniż|strat(?:a|y|ę|ą|om|ami|ach)?\b"
        r"|straci|ubyt|deficyt|brak|niedob|ujemn|gorsz|pogorsz|opóźni|skurcz)"
    ),
    **dict.fromkeys(("sv", "da", "nb", "nn", "no"), _SCANDINAVIAN_DECREASES),
}
"""The same in the language of an answer, by ISO 639-1 code."""


_PERCENT = "%|percent|per cent|prozent|procent|prosent|pour ?cent|por ?ciento|por cento|per cento"
"""Matches a percent sign or word after a number, in any language."""
_PERCENTAGES = (
    rf"{_PERCENT}|pct|porcent|percentua|\b100(?:\.0)?\b"
    # English and German, also as the last part of a compound: "Inflationsrate", but not "corporate"
    r"|share(?!hold)|growth|anteil|wachstum|quote|(?:(?<![^\W_])|(?<=[ns]))rate[ns]?(?![^\W_])"
    # Romance
    r"|(?<![^\W_])(?:taux|tasas?|tasso|tassi|taxas?|cuotas?|croissance|crecimiento|crescita|crescimento"
    r"|participaci[óo]n|participa[çc][ãa]o)(?![^\W_])"
    # Dutch, Scandinavian, also in compounds: "marknadsandel", but not "handel"
    r"|aandeel|groei|(?<![hmvw])andel(?:en|ar|er)?(?![^\W_])|tillväxt|vækst|vekst"
    # Polish
    r"|(?<![^\W_])(?:udział|odset(?:ek|ki)|stop[ay]|wzrost|dynamika)(?![^\W_])"
)
"""Matches the labels of columns that may contain percentages, in any language."""
_MORE_PERCENTAGES = {
    "fr": r"(?<![^\W_])parts?(?![^\W_])",
    "it": r"(?<![^\W_])quota(?![^\W_])",
    "pt": r"(?<![^\W_])quotas?(?![^\W_])",
    "nl": r"\w{3}graad(?![^\W_])",
    **dict.fromkeys(("sv", "da", "nb", "nn", "no"), r"\w{3}grad(?:en)?(?![^\W_])|(?<![^\W_])kvot(?![^\W_])"),
}
"""The same in the language of an answer, by ISO 639-1 code. In other languages they mean something else."""


@dataclass(frozen=True)
class LanguageWords:
    """The words that give numbers their meaning in answers in one language.

    Attributes:
        scales: powers of ten by name, in lower case.
        number: matches a number, in digits or as a word, with its sign and its scale.
        labels: by power of ten, a pattern for the labels that name it, in any language.
        percentages: matches labels of values that may be percentages, in any language.
        decreases: matches words such as "fell"; None if the language's words are unknown.
        has_words: whether a word such as "ten" is a number. In Dutch and Polish it is not.
    """

    scales: Mapping[str, int]
    number: re.Pattern[str]
    labels: Mapping[int, re.Pattern[str]]
    percentages: re.Pattern[str]
    decreases: re.Pattern[str] | None
    has_words: bool

    def exponent(self, name: str) -> int:
        """Return the power of ten that a scale's name stands for: 6 for "million". Return 0 for other
        words.
        """
        return self.scales.get(" ".join(name.casefold().split()), 0)

    def scales_named(self, label: str) -> set[int]:
        """Return the powers of ten that a label names, such as 3 for "in TEUR" or "revenue_k"."""
        return {power for power, pattern in self.labels.items() if pattern.search(label)}

    def may_be_decrease(self, text: str) -> bool:
        """Return whether a text may describe a negative number by its magnitude: "it fell by 45"."""
        return self.decreases is None or self.decreases.search(text) is not None


@cache
def words_of(language: str) -> LanguageWords:
    """Return the words for answers in `language`, an ISO 639-1 code with or without a region."""
    code = language[:2].casefold()
    scales = {**_by_name(_SCALES), **_by_name(_MORE_SCALES.get(code, {}))}
    others = (_by_name(more) for more in _MORE_SCALES.values())
    labels = {
        (name, power) for more in others for name, power in more.items() if name not in AMBIGUOUS_SCALES
    }
    labels |= {*_by_name(_SCALES).items(), *scales.items()}
    more = _MORE_DECREASES.get(code)
    return LanguageWords(
        scales,
        _number(_alternatives(scales)),
        {power: _label(power, [name for name, other in labels if other == power]) for power in _SCALES},
        re.compile("|".join(filter(None, (_PERCENTAGES, _MORE_PERCENTAGES.get(code)))), re.IGNORECASE),
        None if more is None else re.compile(f"{_DECREASES}|{more}" if more else _DECREASES, re.IGNORECASE),
        has_words=code in _NUMBER_WORD_LANGUAGES,
    )


def without_periods(text: str) -> str:
    """Remove the names of periods that contain a number word, such as "the first three quarters", and the
    lengths of a year, such as "twelve months".
    """
    return _PERIOD.sub("", text)


def is_percent_word(text: str) -> bool:
    """Return whether a text is the percent sign or a word for it."""
    return re.fullmatch(_PERCENT, text, re.IGNORECASE) is not None


def _by_name(scales: Mapping[int, str]) -> dict[str, int]:
    return {name: power for power, names in scales.items() for name in names.split(", ")}


def _number(scale: str) -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w.,])(?P<sign>[-−–](?=[\d€$£]))?[€$£]?\s?"
        # Spaces group digits only after one to three, so "2025 747.590" is a year and a number.
        r"(?P<digits>\d{1,3}(?:[\u00a0\u202f\u2009 ]\d{3}(?!\d))+(?:[.,]\d+)*|\d+(?:[.,'’]\d+)*)"
        rf"(?P<rest>\s?(?:%|(?:{_PERCENT})\b)|\s?(?:{scale})\b)?"
        rf"|(?<!\w)(?P<word>{'|'.join(NUMBER_WORDS)})(?:\s(?P<scale>{scale}))?(?!\w)",
        re.IGNORECASE,
    )


def _label(power: int, names: Collection[str]) -> re.Pattern[str]:
    pattern = rf"(?:{CURRENCY})?(?:{_alternatives(names)})(?:{CURRENCY})?"
    if power == 3:
        pattern = f"{pattern}|{_THOUSANDS}"
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", re.IGNORECASE)


def _alternatives(names: Collection[str]) -> str:
    """Return a pattern for the names, longest first: "mil millones" before "mil"."""
    longest_first = sorted(names, key=len, reverse=True)
    return "|".join(re.escape(name).replace(r"\ ", r"\s") for name in longest_first)
