"""What a question asks about: without the clauses that only say what form the answer shall have. Pure.

"What was the revenue in 2021? Answer in billions, rounded to two decimals." asks about revenue in 2021; the
rest is in no document, and would make a question that is answered there look foreign.
"""

import re

_CLAUSE_START = re.compile(
    r"(?<=[?!])\s*(?=[^\W\d_])|(?<=[.;])\s+(?=[^\W\d_])|"
    r"[,;.?]\s*(?=e\.?\s?g\b|z\.\s?b\.|for example|zum beispiel)",
    re.IGNORECASE,
)
_FORM_WORDS = r"""answers?|response|format|formatted|decimals?|integers?|floats?|strings?|lists?|order|
    percents?|percentages?|billions?|millions?|thousands?|units?|words?|sentences?|antwort|nachkommastellen?|liste|prozent|
    million(?:en)?|milliarden?|wort(?:en)?|sätzen|reihenfolge|ganze"""
_ABOUT_FORM = re.compile(
    rf"""(?:please\s+|bitte\s+)?(?:
        (?:write|give|provide|return|list|state|format|express|answer|respond|report|runde|antworte|
           formatiere|schreibe?|gib|nenne)\b(?!.*\bquestion\b)(?=.*\b(?:{_FORM_WORDS})\b)
        | round(?:ed)?\b | runde(?:n)?\b | gerundet\b | e\.?\s?g\b | z\.\s?b\.
        | for\ example\b | zum\ beispiel\b
        | (?:the|your)\ answer\ (?:shall|should|must)\b | (?:die|deine)\ antwort\ (?:soll|muss)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_UNIT_IN_BRACKETS = re.compile(r"\s*\((?:in|as|round|rounded|gerundet|als)\b[^)]*\)", re.IGNORECASE)


def asked_of(question: str) -> str:
    """The question without such clauses; the first clause stays, however it begins."""
    bare = _UNIT_IN_BRACKETS.sub("", question.strip())
    starts = [found.end() for found in _CLAUSE_START.finditer(bare)]
    pieces = [bare[start:end] for start, end in zip([0, *starts], [*starts, len(bare)], strict=True)]
    kept = [piece for place, piece in enumerate(pieces) if not place or not _ABOUT_FORM.match(piece)]
    return "".join(kept).strip(" ,;")
