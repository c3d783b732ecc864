"""What the passages at hand do not hold of a task: documents that were not read, and things asked about."""

from dataclasses import dataclass

from local.model_server.answers.rows import names_of_documents
from local.model_server.prompt_reader import Document
from local.model_server.reports.assignment import Assignment
from local.model_server.text.aspects import aspects_of
from local.model_server.text.held import is_held
from local.model_server.text.passages import passages_of


@dataclass(frozen=True)
class Gaps:
    """What is lacking.

    Attributes:
        unread: documents of the task without a passage.
        open_aspects: things asked about of which no passage says anything.
        silent: documents with passages of which none says anything of what is asked, while others do.
    """

    unread: tuple[Document, ...]
    open_aspects: tuple[str, ...]
    silent: tuple[Document, ...]


def find_gaps(assignment: Assignment) -> Gaps:
    """The gaps of what is at hand. With nothing at hand every aspect is open."""
    names = names_of_documents(assignment.documents)
    aspects = aspects_of(assignment.question, names)
    embedder = assignment.embedder
    held = [one for one in aspects if is_held(one, assignment.passages, names, embedder)]
    silent = [
        document
        for document in assignment.read
        if held and not any(is_held(one, passages_of([document]), names, embedder) for one in held)
    ]
    return Gaps(
        unread=tuple(document for document in assignment.documents if not document.blocks),
        open_aspects=tuple(one.rstrip("?. ") for one in aspects if one not in held),
        silent=tuple(silent),
    )
