"""`last` in place of an id: the thread last asked in, the newest run in it, the newest summary."""

from cli.api import Api, segment
from cli.errors import CommandError


def thread_id_of(api: Api, named: str) -> str:
    """The id of a thread, or of the newest one for `last`.

    Raises:
        CommandError: there is no thread yet.
    """
    if named != "last":
        return named
    threads = api.call("GET", "/threads", params={"limit": 1})["threads"]
    if not threads:
        raise CommandError("You have no threads yet.", "Ask something first.")
    return str(threads[0]["thread_id"])


def run_id_of(api: Api, named: str) -> str:
    """The id of a run, or of the newest one for `last`.

    Raises:
        CommandError: nothing has been asked yet.
    """
    if named != "last":
        return named
    path = f"/threads/{segment(thread_id_of(api, named))}/messages"
    messages = api.call("GET", path, params={"limit": 1})["messages"]
    if not messages:
        raise CommandError("Nothing was asked in your newest thread.", "Name a run by its id.")
    return str(messages[-1]["run_id"])


def summary_id_of(api: Api, named: str) -> str:
    """The id of a summary, or of the newest one for `last`.

    Raises:
        CommandError: there is no summary yet.
    """
    if named != "last":
        return named
    summaries = api.call("GET", "/summaries", params={"limit": 1})["summaries"]
    if not summaries:
        raise CommandError("You have no summaries yet.", "Create one first.")
    return str(summaries[0]["summary_id"])
