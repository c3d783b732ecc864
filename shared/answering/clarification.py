"""Clarifying questions about ambiguous documents: their options, and the meaning of the user's reply."""

import re
from collections.abc import Sequence
from unicodedata import normalize

from shared.evidence.messages import GERMAN, messages_in
from shared.evidence.untrusted_text import one_line
from shared.platform.errors import CallerError
from shared.retrieval.document_names import naming_words
from shared.retrieval.models import DocumentRecord
from shared.runs.models import Choice, ClarificationAnswer, ClarificationOption

# Maximum number of details per option. The label of a button has room for 120 characters.
_MAX_DETAILS = 3
_MAX_DETAIL_CHARS = 40
_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")

_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth".split(),
    "one two three four five six seven eight nine".split(),
    "1st 2nd 3rd 4th 5th 6th 7th 8th 9th".split(),
    "erste zweite dritte vierte fünfte sechste siebte achte neunte".split(),
    "ersten zweiten dritten vierten fünften sechsten siebten achten neunten".split(),
    "erstes zweites drittes viertes fünftes sechstes siebtes achtes neuntes".split(),
    "erster zweiter dritter vierter fünfter sechster siebter achter neunter".split(),
    "eins zwei drei vier fünf sechs sieben acht neun".split(),
)

_NUMBER_WORDS = {word: number for words in _ORDINALS for number, word in enumerate(words, start=1)}
_LAST = frozenset("last letzte letzten letztes letzter".split())
_ALL = frozenset(
    "all both every each any everything alle allen beide beiden egal jede jedes sämtliche".split()
)
_NEWEST = frozenset("newest latest recent newer neueste neuesten neuestes neuere aktuellste jüngste".split())
_OLDEST = frozenset("oldest earliest older älteste ältesten ältestes ältere".split())

_AROUND = frozenset(
    "the a an this that one option number no nr nummer please bitte i we d mean meant want would like take "
    "use it is of them these ones document documents file dokument dokumente datei und and or oder most "
    "choose pick der die das den dem ich wir meine meinen nehme nimm von ihnen choice answer version".split()
)


def options_of(candidates: Sequence[DocumentRecord]) -> tuple[ClarificationOption, ...]:
    """Return the candidate documents as options, numbered from 1."""
    return tuple(
        ClarificationOption(
            number=number,
            doc_id=record.doc_id,
            filename=record.filename,
            title=record.title,
            date=record.upload_date.date().isoformat(),
            details=details,
        )
        for number, (record, details) in enumerate(
            zip(candidates, _differences(candidates), strict=True), start=1
        )
    )


def _differences(candidates: Sequence[DocumentRecord]) -> list[tuple[str, ...]]:
    """Return short details of each document, taken from at most three properties in which the documents
    differ.
    """
    differing = [
        [one_line(value or "")[:_MAX_DETAIL_CHARS] for value in values]
        for values in (
            [record.printed_date for record in candidates],
            [record.department for record in candidates],
            [record.document_type for record in candidates],
            [record.author for record in candidates],
            [record.language for record in candidates],
            [record.project_id for record in candidates],
        )
        if len(set(values)) > 1
    ][:_MAX_DETAILS]
    return [tuple(filter(None, values)) for values in zip(*differing, strict=True)] or [()] * len(candidates)


def clarifying_question(language: str, reference: str, option_count: int) -> str:
    """Return the text of the clarifying question, in German for a German answer and otherwise in English."""
    if messages_in(language) is GERMAN:
        return (
            f"„{reference}“ passt auf {option_count} Dokumente. Welches meinen Sie? "
            "Antworten Sie mit der Nummer oder in eigenen Worten."
        )
    return (
        f"“{reference}” matches {option_count} documents. Which one do you mean? "
        "Answer with its number, or in your own words."
    )


def reply_event_name(ask_step: int) -> str:
    """Return the name of the external event that signals a reply to the question asked in step `ask_step`."""
    return f"answered-{ask_step}"


def read_reply(answer: ClarificationAnswer, options: Sequence[ClarificationOption]) -> Choice:
    """Interpret a reply to a clarifying question. It selects options, or it adds words to the question.

    Raises:
        CallerError: no option has this number; the hints list the options.
    """
    if answer.choice is not None:
        return Choice(said=str(answer.choice), numbers=_option_numbers([answer.choice], options))
    text = answer.text or ""
    if not options:
        return Choice(said=text, extra_words=text)
    # Normalise first, because `isdigit` accepts characters such as "②" that `int` rejects.
    words = _WORD.findall(normalize("NFKC", text).casefold())
    significant = [word for word in words if word not in _AROUND] or [
        word for word in words if word in _NUMBER_WORDS
    ]
    numbers = _by_position(significant, options) or _by_words(significant, options)
    if numbers is None:
        return Choice(said=text, extra_words=text)
    return Choice(said=text, numbers=numbers)


def chosen_doc_ids(choice: Choice, options: Sequence[ClarificationOption]) -> tuple[str, ...]:
    """Return the ids of the chosen documents, or those of all options if none was chosen."""
    return tuple(option.doc_id for option in options if not choice.numbers or option.number in choice.numbers)


def _by_position(words: Sequence[str], options: Sequence[ClarificationOption]) -> tuple[int, ...] | None:
    """Return the numbers of the options that a reply selects by number, ordinal or age ("both", "the last",
    "the newest"), or None.

    Any other word in the answer makes it None.
    """
    if not words:
        return None
    if all(word.isdecimal() or word in _NUMBER_WORDS for word in words):
        digits = [word for word in words if word.isdecimal()]
        if digits and _are_in_names(digits, options):
            return None  # the number occurs in an option name, such as a year, and isn't an option number
        return _option_numbers([_NUMBER_WORDS.get(word) or int(word[:9]) for word in words], options)
    for meanings, numbers in (
        (_ALL, tuple(option.number for option in options)),
        (_LAST, (options[-1].number,)),
        (_NEWEST, _of_age(options, max(_age(option) for option in options))),
        (_OLDEST, _of_age(options, min(_age(option) for option in options))),
    ):
        if set(words) <= meanings:
            return numbers
    return None


def _by_words(words: Sequence[str], options: Sequence[ClarificationOption]) -> tuple[int, ...] | None:
    """Return the numbers of the options that share the most distinguishing words with a reply, or None if no
    word distinguishes them.

    Names come before dates and details: "2024" means the report of 2024, not one that was added in 2024.
    """
    reply_words = naming_words(*words)
    for words_of in (_name_words_of, _words_of):
        words_of_options = [words_of(option) for option in options]
        distinguishing = reply_words - frozenset.intersection(*words_of_options)
        hits = [len(distinguishing & option_words) for option_words in words_of_options]
        if any(hits):
            return tuple(option.number for option, hit in zip(options, hits, strict=True) if hit == max(hits))
    return None


def _option_numbers(numbers: Sequence[int], options: Sequence[ClarificationOption]) -> tuple[int, ...]:
    unknown = [number for number in numbers if number not in {option.number for option in options}]
    if unknown:
        raise CallerError(
            f"There is no option {unknown[0]}; choose one of 1 to {len(options)}.",
            *(f"{option.number}: {option.name}" for option in options),
        )
    return tuple(sorted(set(numbers)))


def _are_in_names(words: Sequence[str], options: Sequence[ClarificationOption]) -> bool:
    """Return whether the numbers in a reply, such as years, are part of the option names rather than option
    numbers.
    """
    places = {str(option.number) for option in options}
    option_words = frozenset().union(*(_words_of(option) for option in options))
    return not set(words) <= places and set(words) <= option_words


def _of_age(options: Sequence[ClarificationOption], age: tuple[str, str]) -> tuple[int, ...]:
    return tuple(option.number for option in options if _age(option) == age)


def _age(option: ClarificationOption) -> tuple[str, str]:
    """Return a sort key for the age of an option: the latest year in its names, then its upload date."""
    years = _YEAR.findall(f"{option.filename} {option.title}")
    return max(years, default=""), option.date


def _name_words_of(option: ClarificationOption) -> frozenset[str]:
    return naming_words(option.filename, option.title)


def _words_of(option: ClarificationOption) -> frozenset[str]:
    return naming_words(option.filename, option.title, option.date, *option.details)
