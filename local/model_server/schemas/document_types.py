"""Type and department of a document, from its file name, title and words. Two tables and a count."""

import re

# Order matters among equals. Singular, lower case, as the schema asks.
_TYPES: dict[str, str] = {
    "price_list": r"price[ _-]?(?:list|table)|preisliste|pricing|tarif",
    "policy": r"polic(?:y|ies)|richtlinie|politique|política",
    "manual": r"manual|handbuch|handbook|operating instructions|betriebsanleitung|bedienungsanleitung|manuel",
    "report": r"report|bericht|rapport|informe|relazione|10-?k\b",
    "guide": r"guide|leitfaden|how[ -]to|tutorial|getting started|quick ?start|anleitung",
    "contract": r"contract|agreement|vertrag|contrat",
    "presentation": r"presentation|slides|präsentation|\.pptx?\b",
    "minutes": r"minutes of|meeting minutes|protokoll",
    "transcript": r"transcript|\.vtt\b|\.srt\b",
    "invoice": r"invoice|rechnung|facture",
    "specification": r"specification|datasheet|data sheet|datenblatt|spezifikation",
    "brochure": r"brochure|flyer|broschüre",
    "paper": r"abstract\b.{0,3000}\bintroduction|arxiv|proceedings",
    "form": r"\bform\b|formular|application form",
    "letter": r"dear (?:sir|madam|mr|ms)|sehr geehrte",
    "spreadsheet": r"\.xlsx?\b|\.csv\b",
    "web_page": r"\.html?\b",
}
_TYPE_PATTERNS = {name: re.compile(pattern, re.IGNORECASE | re.DOTALL) for name, pattern in _TYPES.items()}
_DEPARTMENT_LINE = re.compile(
    r"\b(?:department|owner|responsible(?: unit| department)?|abteilung|bereich|verantwortlich)"
    r"\s*:\s*([^\n|;.]{2,40})",
    re.IGNORECASE,
)
_NAMED_DEPARTMENT = re.compile(
    r"\b((?:Human Resources|HR|Finance|Engineering|Legal|Marketing|Sales|Operations|Maintenance|Production|"
    r"Quality|Purchasing|Procurement|IT|Research|Security|Safety|Logistics|Compliance))"
    r" (?:Department|Team|Division)\b"
)
_NAMED_GERMAN = re.compile(
    r"\b(Personal|Finanz|Rechts|Marketing|Vertriebs|Einkaufs|IT-|Qualitäts)-?abteilung\b"
)
_TOP = 4_000


def document_type_of(filename: str, title: str, text: str) -> str:
    """The type that the title names, else the file's name, else the top of the text; "document" otherwise."""
    for place in (title, filename.replace("_", " ").replace("-", " "), filename, text[:_TOP]):
        hits = {name: len(pattern.findall(place)) for name, pattern in _TYPE_PATTERNS.items()}
        best = max(hits, key=lambda name: hits[name])
        if hits[best]:
            return best
    return "document"


def department_of(text: str) -> str | None:
    """The department on a "Department:" line, else the first one named as such near the top."""
    top = text[:_TOP]
    if line := _DEPARTMENT_LINE.search(top):
        return line.group(1).strip(" *_#,")
    if named := _NAMED_DEPARTMENT.search(top):
        return named.group(1)
    german = _NAMED_GERMAN.search(top)
    return german.group(0) if german else None
