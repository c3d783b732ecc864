"""Which pictures an answer shows, and where. Pure.

The model names a picture of the evidence where it belongs; it is put behind the line in which it is named,
but never into a table or code.
"""

import re
from dataclasses import dataclass, field

from shared.evidence.citations import source_place
from shared.evidence.models import AnswerFigure
from shared.evidence.reader_text import readable
from shared.retrieval.models import Hit

_BLOB = re.compile(r"figures/(?P<doc_id>[A-Za-z0-9_-]{1,128})/(?P<name>[0-9a-f]{64}\.png)")
_PATH = re.compile(r"/api/documents/(?P<doc_id>[A-Za-z0-9_-]{1,128})/figures/(?P<name>[0-9a-f]{64}\.png)")

# Brackets and everything else that could end the text of a picture, begin markup, or hide what follows.
_SIGNS = re.compile(r"[\[\]<>`*_|\\!&#~]|[^\S ]|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_MAX_ALT_CHARS = 200


def figure_path(blob_path: str | None) -> str | None:
    """The address of a picture in our API, from the blob path that its block carries; None if it is none."""
    found = _BLOB.fullmatch(blob_path or "")
    return f"/api/documents/{found['doc_id']}/figures/{found['name']}" if found else None


def figure_blob_name(doc_id: str, name: str) -> str | None:
    """The blob's name in the container of figures; None where no figure can be called so."""
    return f"{doc_id}/{name}" if _BLOB.fullmatch(f"figures/{doc_id}/{name}") else None


def blob_name_of_path(path: str) -> str | None:
    """The blob's name in the container of figures, from an address that `figure_path` made."""
    found = _PATH.fullmatch(path)
    return f"{found['doc_id']}/{found['name']}" if found else None


def answer_figure(hit: Hit) -> AnswerFigure | None:
    """The figure of an image block; None for any other block."""
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
    """`![caption](address) (Source: manual.pdf, S. 3)`."""
    return (
        f"![{alt_text(figure.caption)}]({figure.path}) ({source_place(figure.filename, figure.page_number)})"
    )


def alt_text(caption: str) -> str:
    """A caption on one line, cut at a word, without what Markdown or HTML would read as a sign.

    A vision model wrote it, and text in the picture may have instructed the model.
    """
    text = readable(" ".join(_SIGNS.sub(" ", caption).split()))
    if len(text) > _MAX_ALT_CHARS:
        text = text[:_MAX_ALT_CHARS].rpartition(" ")[0] + " …"
    return text or "Figure"


MAX_FIGURES = 4  # of one answer; unmeasured


@dataclass
class FigurePlacer:
    """The pictures of one answer.

    Attributes:
        hits: the evidence; nothing else can be shown.
        placed: what is shown, in the order of the text.
    """

    hits: tuple[Hit, ...]
    placed: list[AnswerFigure] = field(default_factory=list)
    _waiting: list[AnswerFigure] = field(default_factory=list)
    _line: str = ""

    def want(self, block_id: str) -> None:
        """The model names a picture. One that there is not, or that is shown already, is passed over."""
        hit = next((hit for hit in self.hits if hit.block_id == block_id), None)
        figure = None if hit is None else answer_figure(hit)
        known = {shown.path for shown in (*self.placed, *self._waiting)}
        if figure is not None and figure.path not in known and len(known) < MAX_FIGURES:
            self._waiting.append(figure)

    @property
    def is_waiting(self) -> bool:
        """Whether a picture waits for its place."""
        return bool(self._waiting)

    @property
    def line_is_free(self) -> bool:
        """Whether a picture may stand behind the line that the answer is in, as far as `passed` has seen it.

        It would tear the row of a table, or the first line of a fence, from what follows.
        """
        return "|" not in self._line and not self._line.lstrip().startswith(("```", "~~~"))

    def passed(self, text: str) -> None:
        """The model has written `text`: remember the line that the answer is in."""
        *lines, rest = text.split("\n")
        self._line = rest if lines else self._line + rest

    def take(self) -> list[AnswerFigure]:
        """The waiting pictures, which are shown now."""
        taken, self._waiting = self._waiting, []
        self.placed += taken
        return taken

    def keep(self, text: str) -> None:
        """The answer was cut to `text`: what it does not show any more is not placed."""
        self._waiting = []
        self.placed = [figure for figure in self.placed if f"]({figure.path})" in text]

    def drop(self) -> None:
        """Forget what waits: the answer turned out to be none."""
        self._waiting = []
