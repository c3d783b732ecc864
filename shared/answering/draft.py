"""Renders the text of an answer for readers while it is being written."""

from dataclasses import dataclass, field

from shared.evidence.figures import FigurePlacer, figure_markdown
from shared.evidence.reader_text import ReaderText


@dataclass
class Draft:
    """The sanitised text of an answer that is still being written.

    Attributes:
        starts_paragraph: whether the model's next text starts a paragraph.
    """

    figures: FigurePlacer
    text: str = ""
    starts_paragraph: bool = False
    _sanitiser: ReaderText = field(default_factory=ReaderText)

    def continue_from(self, text: str) -> None:
        """Replace the text with the text of an earlier turn. The next text starts a new paragraph."""
        self.text, self.starts_paragraph = text, bool(text)
        self._sanitiser = ReaderText.after(text)

    def write(self, text: str) -> None:
        """Append text from the model. Pending figures are inserted after the next line end that permits
        it.
        """
        if self.starts_paragraph and (text := text.lstrip()):
            self.add_paragraph("")
        while self.figures.is_waiting and "\n" in text:
            line, _, text = text.partition("\n")
            self._feed(line)
            if self.figures.line_is_free and not self._sanitiser.open_fence:
                self.settle()
                self.show_figures()
                self.text += self._sanitiser.own("\n")
            self._feed("\n")
        self._feed(text)

    def settle(self) -> None:
        """Flush text that the sanitiser withholds. Call this before appending text written by the app."""
        self.text += self._sanitiser.finish()

    def add_note(self, text: str) -> None:
        """Append text written by the app to the current line."""
        self.settle()
        self.text += self._sanitiser.note(text)
        self.starts_paragraph = False

    def add_paragraph(self, text: str) -> None:
        """Append a paragraph written by the app, after closing an open table or code block."""
        if self._sanitiser.open_fence and not self.text.rstrip(" ").endswith("\n"):
            self.text += self._sanitiser.own("\n")  # the current line may itself be the end of the code block
        before = self.text.rstrip(" ")
        line_ends = len(before) - len(before.rstrip("\n"))
        fence = self._sanitiser.open_fence
        code_end = f"{fence}\n\n" if fence else ""
        gap = (code_end or "\n\n"[min(line_ends, 2) :]) if before else ""
        self.text += self._sanitiser.own(gap + text)
        self.starts_paragraph = False

    def show_figures(self) -> None:
        """Append all pending figures, each as a separate paragraph."""
        for figure in self.figures.take():
            self.add_paragraph(figure_markdown(figure))

    def _feed(self, text: str) -> None:
        self.figures.passed(text)
        self.text += self._sanitiser.feed(text)
