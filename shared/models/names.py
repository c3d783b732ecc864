"""Names of containers, tables and queues. The Bicep modules and the local launcher use the same."""

DOCUMENTS = "documents"
FIGURES = "figures"
RUN_LOG = "run-log"
WORK = "work"
CONTAINERS = (DOCUMENTS, FIGURES, RUN_LOG, WORK)

RUNS_TABLE = "runs"
DOCUMENTS_TABLE = "documents"

BLOB_DELETED_QUEUE = "blob-deleted"
# Where the Functions host puts what was tried in vain: of the blob trigger, and of the queue above.
POISON_QUEUES = ("webjobs-blobtrigger-poison", f"{BLOB_DELETED_QUEUE}-poison")
