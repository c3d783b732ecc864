"""Every call of the API, in the order in which the page shows them. A route that is not here fails a test."""

from functions.http.openapi.conversations import CHANNELS, MEMORY, QUESTIONS, SUMMARIES, THREADS
from functions.http.openapi.documents import PAGES, READING, SEARCH, WRITING
from functions.http.openapi.operations import CALLER, DESCRIPTION, HEALTH, OPERATION

OPERATIONS = (
    *QUESTIONS,
    *SEARCH,
    *READING,
    *PAGES,
    *WRITING,
    *SUMMARIES,
    *THREADS,
    *MEMORY,
    *CHANNELS,
    *CALLER,
    *OPERATION,
    *HEALTH,
    *DESCRIPTION,
)
