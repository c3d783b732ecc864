"""Which pictures of a document are figures, and the text that is indexed for each. Pure."""

from collections import Counter
from collections.abc import Sequence

from shared.documents.models import Element, Figure
from shared.ingestion.chunking import Outline, path_text

_DECORATION_TIMES = 3  # a logo comes on every page, a figure that is looked at again comes twice
_CONTEXT_CHARS = 700  # on either side
_MAX_WORDS_CHARS = 1500
_MAX_LABEL_CHARS = 500
_MAX_PATH_CHARS = 300


def figures_of(elements: Sequence[Element]) -> list[Figure]:
    """The figures of a document, in reading order."""
    times = Counter(element.picture.key for element in elements if element.picture is not None)
    outline = Outline()
    figures: list[Figure] = []
    seen: set[str] = set()
    for position, element in enumerate(elements):
        path = outline.enter(element)
        picture = element.picture
        if picture is None or picture.key in seen or times[picture.key] >= _DECORATION_TIMES:
            continue
        seen.add(picture.key)
        figures.append(
            Figure(
                key=picture.key,
                label=element.text[:_MAX_LABEL_CHARS],
                context=_context(elements, position),
                words=picture.words[:_MAX_WORDS_CHARS],
                heading_path=path_text(path)[:_MAX_PATH_CHARS],
                page_number=element.page_number,
                width_px=picture.width_px,
                height_px=picture.height_px,
            )
        )
    return figures


def figure_text(figure: Figure, caption: str) -> str:
    """What is indexed and embedded for a figure: its name in the document, unless the caption says it."""
    return caption if not figure.label or figure.label in caption else f"{figure.label}\n{caption}"


def caption_by_rule(figure: Figure) -> str:
    """A caption without a model: what the document says of the figure, else the words in it."""
    said = figure.label or " ".join(figure.words.split()) or " ".join(figure.context.split())
    short = said[:_CONTEXT_CHARS].strip()
    place = f" on page {figure.page_number}" if figure.page_number else ""
    return short or f"A figure{place}."


def _context(elements: Sequence[Element], position: int) -> str:
    """The text on either side of an element, on the same page."""
    before = _texts(elements[position - 1 :: -1] if position else [], elements[position])
    after = _texts(elements[position + 1 :], elements[position])
    return "\n".join([*reversed(before), *after])


def _texts(elements: Sequence[Element], figure: Element) -> list[str]:
    """Texts from the figure on outwards, until there are enough."""
    words = figure.picture.words if figure.picture else ""
    texts: list[str] = []
    room = _CONTEXT_CHARS
    for element in elements:
        if element.page_number != figure.page_number or room <= 0:
            break
        if element.kind != "figure" and element.text and element.text not in (figure.text, words):
            texts.append(element.text[:room])
            room -= len(element.text)
    return texts
