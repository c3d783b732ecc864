"""What a run knows of the conversation before it: the summary of older turns, and the newest ones."""

from shared.models.base import Model


class Turn(Model):
    """One question with its answer, as a later question needs them.

    Attributes:
        question: as it was asked.
        answer: the answer's text, cut to what a prompt can carry; empty when the run failed.
        doc_ids: documents that the answer cited, in the order of their citations.
        filenames: their names, in the same order.
    """

    question: str
    answer: str
    doc_ids: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()


class Conversation(Model):
    """The turns before a question, oldest first.

    Attributes:
        summary: what the turns before `turns` were about; empty when there are none.
    """

    summary: str = ""
    turns: tuple[Turn, ...] = ()
