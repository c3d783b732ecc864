"""Provenance: a record of the documents whose content was in the prompts of an answer. Pure.

An answer may be shared only with people who can read all of them, because the model wrote each statement with
the complete prompt in view. Whatever can't be named as a document is an obstacle.
"""

from collections.abc import Iterable
from typing import Literal, Self

from shared.documents.ids import is_conversation_id
from shared.platform.database_sources import is_database_id
from shared.platform.models import Model
from shared.retrieval.models import DocumentRecord, Hit

Obstacle = Literal["conversation_file", "counts", "database", "workspace", "tool", "unknown"]
"""Why an answer can't be shared with anyone.

`conversation_file`: it used a file that only its thread may see. `counts`: it may state numbers of documents
that it doesn't list. `database`: it used a database, whose rows change without notice. `workspace`: it used a
workspace file, which may contain text of any document. `tool`: it used a tool that doesn't report its
documents. `unknown`: the record is incomplete.
"""


class UsedDocument(Model):
    """A document version whose text, metadata or name was part of a prompt."""

    doc_id: str
    version: int


class Provenance(Model):
    """All documents in the prompts of a run and its sub-agents, stored with the answer.

    Attributes:
        documents: without duplicates. A document that changed during the run occurs once for each version.
        run_ids: remembered runs whose answers were in a prompt.
        is_follow_up: whether earlier turns of the thread, or their summary, were in a prompt.
        obstacles: reasons why the answer can't be shared.
    """

    documents: tuple[UsedDocument, ...] = ()
    run_ids: tuple[str, ...] = ()
    is_follow_up: bool = False
    obstacles: tuple[Obstacle, ...] = ()

    @classmethod
    def of(cls, *sources: DocumentRecord | Hit | UsedDocument) -> Self:
        """Return the provenance of search hits and document records. Databases and files of a thread make an
        answer unshareable.
        """
        used = dict.fromkeys((one.doc_id, one.version) for one in sources)
        documents = [UsedDocument(doc_id=doc_id, version=version) for doc_id, version in used]
        files = tuple(one for one in documents if not is_database_id(one.doc_id))
        kinds: dict[Obstacle, bool] = {
            "conversation_file": any(is_conversation_id(one.doc_id) for one in files),
            "database": len(files) < len(documents),
        }
        return cls(documents=files, obstacles=tuple(kind for kind, is_there in kinds.items() if is_there))

    @classmethod
    def joined(cls, parts: Iterable["Provenance"]) -> Self:
        """Return the union of several provenances, sorted so that the result does not depend on their
        order.
        """
        each = list(parts)
        documents = {(one.doc_id, one.version): one for part in each for one in part.documents}
        return cls(
            documents=tuple(documents[key] for key in sorted(documents)),
            run_ids=tuple(sorted({run_id for part in each for run_id in part.run_ids})),
            is_follow_up=any(part.is_follow_up for part in each),
            obstacles=tuple(sorted({obstacle for part in each for obstacle in part.obstacles})),
        )


UNKNOWN = Provenance(obstacles=("unknown",))
NOTHING_USED = Provenance()
