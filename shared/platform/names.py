"""Names of blob containers, tables and queues, which the Bicep modules and the local launcher use too, and
suffixes of files.
"""

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
QUEUES = (TURNS_QUEUE, ERASURES_QUEUE, INGESTIONS_QUEUE)  # queues to which the app itself sends messages
# The Functions host moves a message here after every attempt of its blob or queue trigger has failed.
POISON_QUEUES = (
    "webjobs-blobtrigger-poison",
    f"{BLOB_DELETED_QUEUE}-poison",
    *(f"{queue}-poison" for queue in QUEUES),
)

TABLE_SUFFIXES = (".csv", ".tsv", ".xlsx", ".xlsm")
"""Ends of names of files that queries can read as tables."""
