"""Reading an answer to a question back: a number, or words that point to options. Pure."""

import re
from collections.abc import Sequence
from unicodedata import normalize

from shared.core.document_names import naming_words
from shared.errors import CallerError
from shared.models.clarification import Choice, ClarificationAnswer, ClarificationOption

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


def read_answer(answer: ClarificationAnswer, options: Sequence[ClarificationOption]) -> Choice:
    """What an answer comes to: options, all of them, or more wording for the question.

    Raises:
        CallerError: a number that no option has; its hints are the options.
    """
    if answer.choice is not None:
        return Choice(said=str(answer.choice), numbers=_known([answer.choice], options))
    said = answer.text or ""
    # "②" is a digit to Python's `isdigit`, and no number to its `int`; normalised, it is both.
    words = _WORD.findall(normalize("NFKC", said).casefold())
    telling = [word for word in words if word not in _AROUND] or [
        word for word in words if word in _NUMBER_WORDS
    ]
    numbers = _by_place(telling, options) or _by_words(telling, options)
    if numbers is None:
        return Choice(said=said, extra_words=said)
    return Choice(said=said, numbers=numbers)


def chosen_doc_ids(choice: Choice, options: Sequence[ClarificationOption]) -> tuple[str, ...]:
    """Ids of the options that a choice means."""
    return tuple(option.doc_id for option in options if not choice.numbers or option.number in choice.numbers)


def _by_place(words: Sequence[str], options: Sequence[ClarificationOption]) -> tuple[int, ...] | None:
    """Numbers, ordinals, "the last", "both", "the newest", when the words say nothing else."""
    if not words:
        return None
    if all(word.isdecimal() or word in _NUMBER_WORDS for word in words):
        digits = [word for word in words if word.isdecimal()]
        if digits and _bearing(digits, options):
            return None  # a year, not a place
        return _known([_NUMBER_WORDS.get(word) or int(word[:9]) for word in words], options)
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
    """The options that bear the most words which not all of them bear; None when no word tells."""
    bearing = [_words_of(option) for option in options]
    telling = naming_words(*words) - frozenset.intersection(*bearing)
    hits = [len(telling & borne) for borne in bearing]
    if not any(hits):
        return None
    return tuple(option.number for option, hit in zip(options, hits, strict=True) if hit == max(hits))


def _known(numbers: Sequence[int], options: Sequence[ClarificationOption]) -> tuple[int, ...]:
    unknown = [number for number in numbers if number not in {option.number for option in options}]
    if unknown:
        raise CallerError(
            f"There is no option {unknown[0]}; choose one of 1 to {len(options)}.",
            *(
                f"{option.number}: {option.title or option.filename} ({option.filename}, {option.date})"
                for option in options
            ),
        )
    return tuple(sorted(set(numbers)))


def _bearing(words: Sequence[str], options: Sequence[ClarificationOption]) -> bool:
    """Whether these numbers stand in names and are no places of the list."""
    places = {str(option.number) for option in options}
    borne = frozenset().union(*(_words_of(option) for option in options))
    return not set(words) <= places and set(words) <= borne


def _of_age(options: Sequence[ClarificationOption], age: tuple[str, str]) -> tuple[int, ...]:
    return tuple(option.number for option in options if _age(option) == age)


def _age(option: ClarificationOption) -> tuple[str, str]:
    """The last year in the name, then the date of the upload."""
    years = _YEAR.findall(f"{option.filename} {option.title}")
    return max(years, default=""), option.date


def _words_of(option: ClarificationOption) -> frozenset[str]:
    return naming_words(option.filename, option.title, option.date)
