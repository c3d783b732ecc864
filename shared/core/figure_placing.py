"""Which pictures an answer shows, and where. Pure.

The model names a picture of the evidence where it belongs; it is put behind the line in which it is named,
but never into a table or code. Where the model names none, the picture that fits best what is cited is shown
at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.core.figure_links import answer_figure
from shared.models.citations import Citation
from shared.models.figures import AnswerFigure
from shared.models.search import Hit

MAX_FIGURES = 4  # of one answer; unmeasured
MIN_FIT = 0.3  # score of a picture on a cited page, on 0-1; unmeasured
MIN_FIT_ELSEWHERE = 0.45  # of a picture on another page of a cited document; unmeasured


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

    def want_best(self, citations: Sequence[Citation]) -> None:
        """Name the picture that fits best, if none was named and one fits."""
        if not self.placed and not self._waiting and (hit := best_figure(self.hits, citations)):
            self.want(hit.block_id)

    @property
    def is_waiting(self) -> bool:
        """Whether a picture waits for its place."""
        return bool(self._waiting)

    @property
    def line_is_free(self) -> bool:
        """Whether a picture may stand behind the line that the answer is in, as far as `passed` was told.

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


def best_figure(hits: Sequence[Hit], citations: Sequence[Citation]) -> Hit | None:
    """The picture that the answer should show: cited itself, else on a cited page, else near one."""
    cited_blocks = {citation.block_id for citation in citations}
    proved = [citation for citation in citations if citation.verified]
    pages = {(citation.doc_id, citation.page_number) for citation in proved}
    documents = {citation.doc_id for citation in proved}
    pictures = [hit for hit in hits if answer_figure(hit) is not None]
    ranks = (
        [hit for hit in pictures if hit.block_id in cited_blocks],
        [hit for hit in pictures if (hit.doc_id, hit.page_number) in pages and hit.score >= MIN_FIT],
        [hit for hit in pictures if hit.doc_id in documents and hit.score >= MIN_FIT_ELSEWHERE],
    )
    return next((max(rank, key=lambda hit: hit.score) for rank in ranks if rank), None)
