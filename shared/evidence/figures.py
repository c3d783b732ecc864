"""Selects the figures of an answer and decides where they are inserted. Pure.

The model names a figure of the evidence where it belongs. The figure is inserted after the line that names
it, but never into a table or code.
"""

import re
from dataclasses import dataclass, field

from shared.evidence.citations import source_place
from shared.evidence.models import AnswerFigure
from shared.evidence.reader_text import readable
from shared.retrieval.models import Hit

_BLOB = re.compile(r"figures/(?P<doc_id>[A-Za-z0-9_-]{1,128})/(?P<name>[0-9a-f]{64}\.png)")
_PATH = re.compile(r"/api/documents/(?P<doc_id>[A-Za-z0-9_-]{1,128})/figures/(?P<name>[0-9a-f]{64}\.png)")

# Characters that could end the alternative text, start markup, or hide the text after them.
_SIGNS = re.compile(r"[\[\]<>`*_|\\!&#~]|[^\S ]|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_MAX_ALT_CHARS = 200


def figure_path(blob_path: str | None) -> str | None:
    """Return the API path that serves a figure, given its blob path, or None if the blob path is invalid."""
    match = _BLOB.fullmatch(blob_path or "")
    return f"/api/documents/{match['doc_id']}/figures/{match['name']}" if match else None


def figure_name(doc_id: str, name: str) -> str | None:
    """Return the figure name `{doc_id}/{name}`, or None if either part contains invalid characters."""
    return f"{doc_id}/{name}" if _BLOB.fullmatch(f"figures/{doc_id}/{name}") else None


def name_of_path(path: str) -> str | None:
    """Return the figure name `{doc_id}/{name}` from an API path returned by `figure_path`, or None for other
    paths.
    """
    match = _PATH.fullmatch(path)
    return f"{match['doc_id']}/{match['name']}" if match else None


def answer_figure(hit: Hit) -> AnswerFigure | None:
    """Convert an image block to a figure for the answer. Return None for other blocks."""
    path = figure_path(hit.image_url) if hit.block_type == "image" else None
    if path is None:
        return None
    return AnswerFigure(
        block_id=hit.block_id,
        doc_id=hit.doc_id,
        filename=hit.filename,
        page_number=hit.page_number,
        caption=hit.image_caption or "",
        path=path,
    )


def figure_markdown(figure: AnswerFigure) -> str:
    """Format a figure as Markdown with its source: `![caption](address) (Source: manual.pdf, S. 3)`."""
    return (
        f"![{alt_text(figure.caption)}]({figure.path}) ({source_place(figure.filename, figure.page_number)})"
    )


def alt_text(caption: str) -> str:
    """Convert a caption to alternative text: one line without Markdown or HTML, truncated at a word boundary.

    A vision model wrote it, and text in the picture may have instructed that model.
    """
    text = readable(" ".join(_SIGNS.sub(" ", caption).split()))
    if len(text) > _MAX_ALT_CHARS:
        text = text[:_MAX_ALT_CHARS].rpartition(" ")[0] + " …"
    return text or "Figure"


MAX_FIGURES = 4  # Maximum number of figures per answer; unmeasured.


@dataclass
class FigurePlacer:
    """The figures that an answer requests but doesn't show yet, and those already inserted.

    Attributes:
        hits: the evidence; only its pictures can be shown.
        placed: figures already shown, in text order.
    """

    hits: tuple[Hit, ...]
    placed: list[AnswerFigure] = field(default_factory=list)
    _waiting: list[AnswerFigure] = field(default_factory=list)
    _line: str = ""

    def want(self, block_id: str) -> None:
        """Queue the picture with this block id for insertion. Ignore unknown and repeated pictures, and any
        beyond the limit.
        """
        hit = next((hit for hit in self.hits if hit.block_id == block_id), None)
        figure = None if hit is None else answer_figure(hit)
        paths = {placement.path for placement in (*self.placed, *self._waiting)}
        if figure is not None and figure.path not in paths and len(paths) < MAX_FIGURES:
            self._waiting.append(figure)

    @property
    def is_waiting(self) -> bool:
        """Whether a picture is queued for insertion."""
        return bool(self._waiting)

    @property
    def line_is_free(self) -> bool:
        """Whether a picture may follow the current line without breaking a table or a code block.

        A picture must not split a table, or separate the first line of a code fence from the code.
        """
        return "|" not in self._line and not self._line.lstrip().startswith(("```", "~~~"))

    def passed(self, text: str) -> None:
        """Update the current line with text that was appended to the answer."""
        *lines, rest = text.split("\n")
        self._line = rest if lines else self._line + rest

    def take(self) -> list[AnswerFigure]:
        """Return the queued pictures, empty the queue and record the pictures as placed."""
        figures, self._waiting = self._waiting, []
        self.placed += figures
        return figures

    def keep(self, text: str) -> None:
        """Forget placed figures that the truncated answer `text` no longer contains, and empty the queue."""
        self._waiting = []
        self.placed = [figure for figure in self.placed if f"]({figure.path})" in text]

    def drop(self) -> None:
        """Empty the queue, because an answer that abstains shows no figures."""
        self._waiting = []
