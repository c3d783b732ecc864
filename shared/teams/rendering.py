"""A committed answer as a message of a chat channel. Pure.

Addresses become absolute, with the app's own host before them: a chat client has no page they could belong
to. Only pictures have signed ones (decision 0024).
"""

from shared.evidence.document_prompt import clock_time
from shared.evidence.figures import alt_text
from shared.evidence.models import AnswerFigure, Citation
from shared.runs.models import RunAnswer
from shared.teams.markdown import for_channel, visible
from shared.teams.models import BotReply, Language, ShownCitation, ShownFigure

MAX_ABSTRACT_CHARS = 480  # what the Agents SDK 1.9.0 sends at most
_MAX_LABEL_CHARS = 60  # of a picture among others whose whole caption stands in the text; unmeasured
_PAGE = {"de": "S. {}", "en": "p. {}"}
_FIGURE = {"de": "Abbildung", "en": "figure"}


def reply_of(answer: RunAnswer, *, language: Language, public_address: str | None) -> BotReply:
    """The message that tells an answer.

    Args:
        answer: refreshed, so that its figures have signed addresses; one without is not shown.
        public_address: of the app, without a slash at its end; None = nobody knows it, and nothing is linked.
    """
    text, tables = for_channel(answer.text)
    shown = [figure for figure in answer.figures if figure.image_url]
    return BotReply(
        text=text,
        citations=tuple(_citation(cited, language, public_address) for cited in answer.citations),
        figures=tuple(
            _figure(figure, _label(figure, text, is_only=len(shown) == 1), language, public_address)
            for figure in shown
        ),
        tables=tables,
        can_be_rated=True,
        is_generated=True,
    )


def _citation(citation: Citation, language: Language, public_address: str | None) -> ShownCitation:
    place = [_place(citation.filename, citation.page_number, language)]
    if citation.start_seconds is not None:
        place.append(clock_time(citation.start_seconds))
    if not citation.verified:  # a quotation from the caption of a figure, which proves nothing
        place.append(_FIGURE[language])
    return ShownCitation(
        n=citation.n,
        name=", ".join(place),
        abstract=_cut(visible(" ".join(citation.quote.split())), MAX_ABSTRACT_CHARS),
        url=_absolute(citation.url, public_address),
    )


def _figure(figure: AnswerFigure, label: str, language: Language, public_address: str | None) -> ShownFigure:
    page = figure.page_number
    view = f"pages/{page}" if page is not None else "readable"
    place = _place(figure.filename, page, language)
    return ShownFigure(
        caption=f"{label} ({place})" if label else place,
        alt=f"{alt_text(figure.caption)} ({place})",
        image_url=figure.image_url or "",
        page_url=_absolute(f"/api/documents/{figure.doc_id}/{view}", public_address),
    )


def _label(figure: AnswerFigure, text: str, *, is_only: bool) -> str:
    """The caption, as far as it does not stand in the text already."""
    caption = alt_text(figure.caption)
    if f"*{caption}*" not in text:
        return caption
    return "" if is_only else _cut(caption, _MAX_LABEL_CHARS)


def _place(filename: str, page_number: int | None, language: Language) -> str:
    name = visible(" ".join(filename.split()))
    return name if page_number is None else f"{name}, {_PAGE[language].format(page_number)}"


def _absolute(address: str, public_address: str | None) -> str:
    """The address with our host, an address of elsewhere as it is; empty when our host is not known."""
    if not address.startswith("/"):
        return address if address.startswith("https://") else ""
    return f"{public_address}{address}" if public_address else ""


def _cut(text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    return text[: most_chars - 2].rpartition(" ")[0][: most_chars - 2] + " …"
