"""Names of containers, tables and queues, shared with the Bicep modules and the local launcher."""

DOCUMENTS = "documents"
RUN_LOG = "run-log"
WORK = "work"
CONTAINERS = (DOCUMENTS, RUN_LOG, WORK)

RUNS_TABLE = "runs"
DOCUMENTS_TABLE = "documents"
THREADS_TABLE = "threads"
SUBAGENT_CONTROL_TABLE = "subagentcontrol"
IDEMPOTENCY_TABLE = "idempotency"
USER_LIMITS_TABLE = "userlimits"
AUDIT_TABLE = "audit"
QUALITY_TABLE = "quality"
BOT_TURNS_TABLE = "botturns"
LIBRARIES_TABLE = "libraries"

BLOB_DELETED_QUEUE = "blob-deleted"
TURNS_QUEUE = "turns"
ERASURES_QUEUE = "erasures"
INGESTIONS_QUEUE = "ingestions"
QUEUES = (TURNS_QUEUE, ERASURES_QUEUE, INGESTIONS_QUEUE)  # written by the app itself
# The Functions host moves messages here when all attempts of the blob trigger or a queue above failed.
POISON_QUEUES = (
    "webjobs-blobtrigger-poison",
    f"{BLOB_DELETED_QUEUE}-poison",
    *(f"{queue}-poison" for queue in QUEUES),
)
