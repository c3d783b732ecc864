"""Streams of server-sent events, for the description of the API."""

from pydantic import RootModel


class RunEventStream(RootModel[str]):
    """Events of a run, each `id: <n>`, `event: <name>`, `data: <json>` and an empty line.

    Numbered from 1 without gaps; `complete` or `error` is the last. A line that begins with `:` is a comment.
    Names and data: docs/events.md.
    """


class DocumentEventStream(RootModel[str]):
    """Changes of documents, each `id`, `event` (`document` or `removed`), `data` and an empty line.

    The data of `document` is a DocumentView; that of `removed` has `doc_id` alone. Ids are moments in
    microseconds, and rise. A line that begins with `:` is a comment.
    """
