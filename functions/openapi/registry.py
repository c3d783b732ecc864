"""Every call of the API, in the order in which the page shows them. A route that is not here fails a test."""

from functions.openapi.channel_calls import CHANNELS
from functions.openapi.conversation_calls import MEMORY, QUESTIONS, SUMMARIES, THREADS
from functions.openapi.document_calls import READING, SEARCH, WRITING
from functions.openapi.operating_calls import CALLER, DESCRIPTION, HEALTH, OPERATION
from functions.openapi.page_calls import PAGES

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
