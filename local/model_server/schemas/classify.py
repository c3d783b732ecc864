"""Type and intent of a question, by the words that give it away. English, German, and their common typos."""

import re

_DOCUMENTS = (
    r"(?:documents?|docs?|files?|manuals?|reports?|policies|papers?|dokumente?|dateien|handbücher|berichte|"
    r"richtlinien|unterlagen)"
)
_MONTHS = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"januar|februar|märz|mai|juni|juli|oktober|dezember)"
)
# What asks for documents by a field of theirs rather than for all of them.
_FIELD = (
    r"\b(?:by|from|dated|published|written|author\w*|department|"
    r"vo[nm]|abteilung|verfasst|geschrieben|aus dem jahr)\b"
)

# Order matters: the first type with a pattern that is found is taken.
_TYPES: dict[str, tuple[str, ...]] = {
    "COMPARISON": (
        r"\bcompar\w*|\bcomaprison|\bdiff?er\w*\b|\bversus\b|\bvs\b|\bcontrast\b|\bsimilarit\w*",
        r"\bvergleich\w*|\bunterschied\w*|\bunterscheid\w*|\bgegenüber\w*\b",
        r"\bchang\w*\s+(?:between|from|since)|\b(?:has|have|what|was)\s+(?:has\s+)?changed|\bwas\b.{0,60}\bgeändert",
        r"\bbetter\b.{0,40}\bor\b",
    ),
    "LISTING": (
        rf"\b(?:which|what)\s+(?:other\s+)?{_DOCUMENTS}\b(?!\s+(?:says?|states?|is the))(?!.*{_FIELD})",
        rf"\b(?:list|show|lsit|give me|name)\b.{{0,25}}\b{_DOCUMENTS}\b(?!.*{_FIELD})",
        rf"\b(?:welche|zeige|liste|nenne)\b.{{0,30}}\b{_DOCUMENTS}\b(?!.*{_FIELD})",
        rf"\b(?:how many|wie viele)\s+{_DOCUMENTS}\b",
    ),
    "DOCUMENT_SUMMARY": (
        r"\bsumm?[ae]?r[iy]\w*|\bsummar\w*|\bsumary\b|\boverview of\b|\btl;?dr\b|\bgist of\b",
        r"\bzusammenfass\w*|\bfass\w*\b.{0,80}\bzusammen\b|\büberblick über\b|\bworum geht es\b",
        r"\bkey (?:points|takeaways) (?:of|from)\b",
        r"\bwhat is (?:the|this) (?:\w+ )?(?:document|report|manual|file|paper|policy) about\b",
    ),
    "METADATA_SEARCH": (
        r"\bwho (?:wrote|authored|published|created|is the author)\b",
        r"\bauthor of\b|\b(?:written|authored) by\b",
        r"\bwhen was\b.{0,60}\b(?:written|published|uploaded|created|issued|updated)\b",
        r"\bwer hat\b.{0,60}\b(?:geschrieben|verfasst|erstellt)\b",
        r"\bverfasser\b|\bautor\b|\bgeschrieben von\b",
        r"\bwann wurde\b.{0,60}\b(?:veröffentlicht|erstellt|hochgeladen|geschrieben)\b",
        rf"\b{_DOCUMENTS}\b.{{0,30}}\b(?:by|from|dated|published|of)\b.{{0,40}}"
        rf"(?:\bdepartment\b|\bteam\b|\b(?:19|20)\d\d\b|\b{_MONTHS}\b)",
        rf"\b(?:which|what|list|show)\b.{{0,20}}\b{_DOCUMENTS}\b.{{0,40}}{_FIELD}",
        rf"\b{_DOCUMENTS}\b.{{0,40}}(?:\bvo[nm]\b|\babteilung\b|\baus dem jahr\b|\b(?:19|20)\d\d\b)",
        r"\b(?:title|department|language|type|date) of (?:the|this)\b"
        r".{0,40}\b(?:document|file|report|manual|policy)\b",
        r"\bwhich department\b.{0,40}\b(?:owns|wrote|published)\b",
    ),
}
_TYPE_PATTERNS = {name: re.compile("|".join(patterns), re.IGNORECASE) for name, patterns in _TYPES.items()}

_EVIDENCE = re.compile(
    r"\b(?:evidence|proof|prove|sources? for|where does it say|which page|show me where|quote|cite)\b|"
    r"\b(?:beleg\w*|nachweis\w*|beweis\w*|auf welcher seite|wo steht|quelle\w*)\b",
    re.IGNORECASE,
)
_PROCEDURAL = re.compile(
    r"\bhow (?:do|can|should|would|to)\b|\bsteps? (?:to|for)\b|"
    r"\b(?:instructions?|procedure|process) (?:for|to|of)\b|"
    r"\bwhat (?:should|must) (?:i|we|you|one) do\b|\bschritte\b|\banleitung\b|\bvorgehen\b|"
    r"\bwie (?:kann|muss|soll|mache|gehe|stelle|richte|wird|werden|ersetze|wechsle|beantrage)\b",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"^(?:what|which|who|when|where|how (?:many|much|long|often|high|old|far)|"
    r"is|are|does|do|can|may|was|were|has|have)\b|"
    r"^(?:was|welche\w*|wer|wann|wo|wie (?:viel\w*|lange|oft|hoch|alt|weit)|"
    r"ist|sind|darf|gibt|hat|wieviel\w*)\b",
    re.IGNORECASE,
)
_BROAD = re.compile(
    r"\b(?:tell me (?:more )?about|explain|why|describe|what do you know|discuss|explore|anything about|"
    r"everything about|warum|weshalb|erkläre?|beschreibe?|erzähle?|alles über)\b",
    re.IGNORECASE,
)


def query_type_of(question: str) -> str:
    """One of the five query types; CONTENT_SEARCH when nothing points elsewhere."""
    return next(
        (name for name, pattern in _TYPE_PATTERNS.items() if pattern.search(question)), "CONTENT_SEARCH"
    )


def intent_of(question: str, query_type: str) -> str:
    """One of the six intents. Type decides for summaries and comparisons, wording for the rest."""
    if query_type == "DOCUMENT_SUMMARY":
        return "doc_summary"
    if query_type == "COMPARISON":
        return "compare_docs"
    if _EVIDENCE.search(question):
        return "evidence_trace"
    if _PROCEDURAL.search(question):
        return "procedural"
    if _BROAD.search(question):
        return "exploratory"
    is_fact = _FACT.search(question.strip()) or query_type != "CONTENT_SEARCH"
    return "fact_lookup" if is_fact else "exploratory"
