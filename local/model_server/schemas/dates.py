"""The date printed in a document, as ISO 8601 with as much as is known. Pure."""

import re
from datetime import date

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january januar janvier enero gennaio januari janeiro jan",
            "february februar février febrero febbraio februari fevereiro feb",
            "march märz mars marzo maart março mar",
            "april avril abril aprile apr",
            "may mai mayo maggio mei maio",
            "june juni juin junio giugno junho jun",
            "july juli juillet julio luglio julho jul",
            "august août agosto augustus aug",
            "september septembre septiembre settembre setembro sep sept",
            "october oktober octobre octubre ottobre outubro oct okt",
            "november novembre noviembre novembro nov",
            "december dezember décembre diciembre dicembre dezembro dec dez",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ORDINAL = r"(?:st|nd|rd|th|\.|º)?"
_DAY = r"(?P<day>\d{1,2})"
_OF = r"(?:(?:of|de)\s+)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_PATTERNS = (
    re.compile(rf"\b{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)\b"),
    re.compile(rf"\b(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.\s?{_YEAR}\b"),
    re.compile(rf"\b{_DAY}{_ORDINAL}\s+{_OF}(?P<name>{_MONTH})\.?,?\s+{_OF}{_YEAR}\b", re.IGNORECASE),
    re.compile(rf"\b(?P<name>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{_YEAR}\b", re.IGNORECASE),
    re.compile(rf"\b(?P<name>{_MONTH})\.?,?\s+(?:de\s+)?{_YEAR}\b", re.IGNORECASE),
    re.compile(rf"\b{_YEAR}-(?P<month>0[1-9]|1[0-2])\b(?!-\d)"),
)  # fmt: skip
_LABELLED_YEAR = re.compile(
    rf"(?:©|\(c\)|copyright|version|date|datum|stand|fiscal year|geschäftsjahr|report|bericht)"
    rf"\D{{0,20}}{_YEAR}\b",
    re.IGNORECASE,
)
_NAME_YEAR = re.compile(rf"(?<!\d){_YEAR}(?!\d)")
CHARACTERS_SEARCHED = 3_000  # a date further down is about something else


def find_date(text: str, filename: str = "") -> str | None:
    """The first full date near the top, else month and year, else a labelled year, else the file name's."""
    top = text[:CHARACTERS_SEARCHED]
    for pattern in _PATTERNS:
        for found in pattern.finditer(top):
            if iso := _iso(found.groupdict()):
                return iso
    labelled = _LABELLED_YEAR.search(top) or _NAME_YEAR.search(filename)
    return labelled["year"] if labelled else None


def _iso(parts: dict[str, str | None]) -> str | None:
    name = parts.get("name")
    month = _MONTHS[name.lower()] if name else int(parts.get("month") or 0)
    day = parts.get("day")
    try:
        whole = date(int(parts["year"] or 0), month, int(day or 1))
    except ValueError:
        return None
    return whole.isoformat() if day else whole.isoformat()[:7]
