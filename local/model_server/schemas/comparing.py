"""Whether a question sets two or more things against each other, by English and German cues. Pure."""

import re

_COMPARATIVES = (
    r"(?:higher|lower|longer|shorter|larger|bigger|smaller|heavier|lighter|faster|slower|cheaper|"
    r"stronger|weaker|stricter|"
    r"better|worse|quieter|louder|harder|softer|safer|warmer|colder|thicker|thinner|wider|deeper|greater|"
    r"more \w+|less \w+|"
    r"höher\w*|niedriger\w*|länger\w*|kürzer\w*|größer\w*|kleiner\w*|schwerer\w*|leichter\w*|"
    r"schneller\w*|langsamer\w*|"
    r"günstiger\w*|billiger\w*|teurer\w*|stärker\w*|schwächer\w*|strenger\w*|besser\w*|schlechter\w*|"
    r"leiser\w*|lauter\w*|"
    r"härter\w*|weicher\w*|sicherer\w*|wärmer\w*|kälter\w*|dicker\w*|dünner\w*|breiter\w*|tiefer\w*|"
    r"effizienter\w*|geeigneter\w*|"
    r"geeignet|suited|suitable|preferable|recommended)"
)
# "older than five years", "more than 10", "longer than usual" measure one thing; they compare no two.
_NO_OTHER = (
    r"(?!\s+(?:\d|one\b|two\b|three\b|four\b|five\b|six\b|ten\b|half\b|usual|expected|planned|allowed|"
    r"permitted|necessary|agreed|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|"
    r"ein(?:e[nrms]?)?\s+(?:jahr|monat|woche|tag|stunde)|zwei\b|drei\b|vier\b|fünf\b|sechs\b|zehn\b|"
    r"erwartet|geplant|erlaubt|"
    r"üblich|nötig|vereinbart|januar|februar|märz))"
)
# Several times set against each other, without a word for it: "how has it changed across the quarters".
_PERIODS = (
    r"(?:periods?|quarters?|years?|months?|seasons?|editions?|versions?|issues|reports|filings|documents|"
    r"minutes|surveys|quartale?n?|jahre?n?|monaten?|ausgaben|fassungen|versionen|berichten?|zeitr[aä]ume?n?|"
    r"dokumenten?|protokollen?)"
)
_MOVED = (
    r"(?:chang(?:e|es|ed|ing)|trend\w*|fluctuat\w*|var(?:y|ied|ies|iations?)|shift\w*|evol(?:ve|ved|ution)\w*|"
    r"develop(?:ed|ment|ments)|progress\w*|transform\w*|grown?|grew|risen|rose|fallen|fell|"
    r"ver[aä]nder\w*|ge[aä]ndert|[aä]nderung\w*|entwick\w*|schwank\w*|trends?)"
)
_OF_TIMES = (
    r"(?:(?:the|these|those|all|several|reported|reporting|different|various|individual|successive)\s+)"
)
_IN_ZEITEN = r"(?:(?:die|den|diese[nr]?|alle[nr]?|mehrere[nr]?|einzelnen|berichteten|verschiedenen)\s+)"
_THROUGH_TIMES = (
    rf"(?:from (?:one )?(?:year|quarter|month|edition) to (?:the )?(?:next|year|quarter|month)|"
    rf"(?:across|throughout|during|over)\s+{_OF_TIMES}{{0,3}}(?<!last )(?<!past ){_PERIODS}|"
    rf"in\s+(?:each of\s+)?these\s+(?:\w+\s+)?(?:{_PERIODS}|[\w-]*\d[\w-]*s)|"
    rf"im (?:zeit)?verlauf|im laufe der (?:zeit|jahre)|(?:über|in|während)\s+{_IN_ZEITEN}{{1,3}}{_PERIODS}|"
    rf"von (?:jahr zu jahr|quartal zu quartal|ausgabe zu ausgabe))"
)
_SEPARATELY = (
    r"(?:separately|breakdown|broken down|side by side|respectively|getrennt|jeweils|einzeln|aufgeschlüsselt)"
)
_EACH_TIME = rf"(?:for|by|in|für|nach|in)\s+(?:each|every|jede[snmr]?)\s+(?:report(?:ed|ing)\s+)?{_PERIODS}"
_COMPARISON = re.compile(
    "|".join(
        (
            r"\bcompar(?:e|es|ed|ing|ison|isons)\b|\bdiffer(?:s|ed|ing|ence|ences)?\b|"
            r"\bdifferent (?:from|to)\b|\bversus\b|\bvs\b",
            r"\bcontrast(?:s|ed|ing)?\b|\bsimilarit\w+|\bdistinguish\w*|\bside by side\b|"
            r"\bhave in common\b|\bunlike\b|\bdeviat\w+",
            r"\bcontradict(?: each other|s?\b)|\b(?:consistent|conflict|agree|"
            r"compatible) with each other\b|\bpros and cons of\b.{0,40}\band\b",
            r"\bagainst (?:each other|one another|those of|that of|the (?:one|ones|other))\b|"
            r"\bput\b.{0,50}\bagainst\b",
            r"\bvergleich\w*|\bverglichen\b|\bunterschied\w*|\bunterscheide\w*|"
            r"\bgegenüber(?:zu)?stell\w+|\bgegenübergestellt\b",
            r"\bstell\w*\b.{0,90}\bgegenüber\b|\bgegenüber (?:dem|der|den) (?:vor\w+|alten|älteren|"
            r"früheren|vorigen|letzten|bisherigen)\b",
            r"\b(\w{3,})\s+\w+\s+gegenüber\s+(?:dem\s+|der\s+)?\1\b|\bgemeinsamkeit\w*|\bgemeinsam haben\b",
            r"\bwidersprechen sich\b|\bsich\b.{0,60}\bwidersprechen\b|\babweich\w*|\bweich(?:t|"
            r"en)\b.{0,80}\bab\b|\bdeck(?:t|en) sich\b",
            r"\bchang\w*\s+(?:\w+\s+){0,3}?(?:between|from)\b|\b(?:has|have|what|was)\s+(?:has\s+)?changed\b",
            r"\bwas\b.{0,60}\bsich\b.{0,90}\b(?:geändert|verändert)\b|\b(?:geändert|"
            r"verändert)\b.{0,40}\bgegenüber\b",
            r"\bwas\s+(?!von\b)(?:\w+\s+){0,5}?geändert\b",
            r"\b(?:grown?|grew|fallen|fell|risen|rose|increased?|decreased?|dropped|gestiegen|gesunken|"
            r"gewachsen)\b.{0,30}"
            r"\b(?:from|between|von|zwischen)\b.{0,30}\b(?:19|20)\d\d\b.{0,12}\b(?:19|20)\d\d\b",
            r"\b(?:of the|von den|der|den) (?:two|both|beiden)\b.{0,60}\b(?:\w+er\b|more\b|less\b)|"
            r"\bwelche[rsmn]? (?:der|von) (?:den )?beiden\b",
            rf"\b{_COMPARATIVES}\b.{{0,70}}(?:,|\bfor\b|\bfür\b).{{0,50}}\b(?:or|oder)\b",
            rf"\b{_COMPARATIVES}\b.{{0,40}}\b(?:or|oder)\b",
            rf"\b{_MOVED}\b.{{0,110}}\b{_THROUGH_TIMES}\b|\b{_THROUGH_TIMES}\b.{{0,80}}\b{_MOVED}\b",
            rf"\b(?:how|has|have|had|trend(?:s|ed)?)\b.{{0,90}}\b{_MOVED}\b.{{0,40}}\bover time\b",
            r"\btrends?\b.{0,90}\bover time\b",
            rf"\b{_SEPARATELY}\b.{{0,40}}\b{_EACH_TIME}\b|\b{_EACH_TIME}\b.{{0,40}}\b{_SEPARATELY}\b",
            r"\b(?:\w{3,}er|more \w+|less \w+|better|worse|"
            rf"fewer)\b(?<!rather)(?<!other)(?:\s+[\w-]+){{0,6}}?\s+than\b{_NO_OTHER}",
            rf"\b{_COMPARATIVES}(?:\s+[\w-]+){{0,3}}?\s+als\b{_NO_OTHER}",
        )
    ),
    re.IGNORECASE,
)


def is_comparison(asked: str) -> bool:
    """Whether two things are compared; `asked` has its cue words spelled right."""
    return bool(_COMPARISON.search(asked))
