"""`threads`: the user's conversations. `memory`: what is remembered of their questions."""

import argparse

from cli.answers import print_answer
from cli.api import Api, segment
from cli.commands import Tree
from cli.errors import CommandError
from cli.terminal import Terminal, moment

_MESSAGES = 20


def register(tree: Tree) -> None:
    """The commands of this file."""
    listing = tree.leaf("threads list", list_threads, "list threads, newest first")
    listing.add_argument("--limit", type=int, default=50, metavar="N", help="maximum number")
    showing = tree.leaf("threads show", show_thread, "show questions and answers, oldest first")
    showing.add_argument(
        "--limit", type=int, default=_MESSAGES, metavar="N", help="maximum number, newest first"
    )
    renaming = tree.leaf("threads rename", rename_thread, "give it another title")
    clearing = tree.leaf("threads clear", clear_thread, "delete its questions and answers, keep the thread")
    deleting = tree.leaf("threads delete", delete_thread, "delete it and everything made from it")
    for parser in (showing, renaming, clearing, deleting):
        parser.add_argument("thread", metavar="THREAD", help="its id; `last` is the newest one")
    renaming.add_argument("title", metavar="TITLE")
    remembered = tree.leaf("memory list", list_memories, "list memories, newest first")
    remembered.add_argument("--limit", type=int, default=50, metavar="N", help="maximum number")
    forgetting = tree.leaf("memory forget", forget, "forget everything")
    for parser in (clearing, deleting, forgetting):
        parser.add_argument("--yes", action="store_true", help="do not ask")


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


def list_threads(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print threads."""
    terminal.rows(
        api.items("/threads", "threads", given.limit),
        ("Title", "Turns", "Last asked", "Id"),
        lambda one: (one["title"], one["turn_count"], moment(one["updated_at"]), one["thread_id"]),
        nothing="There are no threads.",
    )


def show_thread(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print the newest turns."""
    path = f"/threads/{segment(thread_id_of(api, given.thread))}/messages"
    # Pages lead to older ones, and each is in order itself: they are put together by their numbers.
    found = sorted(api.items(path, "messages", given.limit), key=lambda message: int(message["number"]))
    if terminal.as_json:
        terminal.json(found)
        return
    for message in found:
        terminal.say(f"{message['number']}. {message['question']}", "bold")
        terminal.note(f"   {moment(message['created_at'])}, run {message['run_id']}")
        if message.get("answer"):
            print_answer(api, terminal, message["answer"])
        else:
            terminal.say(message.get("error") or message["status"], "yellow")
    if not found:
        terminal.say("Nothing was asked in it.")


def rename_thread(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Rename one."""
    path = f"/threads/{segment(thread_id_of(api, given.thread))}"
    thread = api.call("PATCH", path, json={"title": given.title})
    terminal.result(thread, f"{thread['thread_id']} is called {thread['title']!r} now.")


def clear_thread(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Delete its turns."""
    terminal.confirm(f"Delete all questions and answers of {given.thread}?", is_sure=given.yes)
    thread = api.call("POST", f"/threads/{segment(thread_id_of(api, given.thread))}/clear")
    terminal.result(thread, f"{thread['thread_id']} is empty.")


def delete_thread(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Delete one."""
    terminal.confirm(f"Delete {given.thread} and everything made of it?", is_sure=given.yes)
    api.call("DELETE", f"/threads/{segment(thread_id_of(api, given.thread))}")
    terminal.result({"thread_id": given.thread, "status": "deleted"}, f"{given.thread} is deleted.")


def list_memories(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Print what is remembered."""
    found = api.items("/memory", "memories", given.limit)
    if terminal.as_json:
        terminal.json(found)
        return
    for memory in found:
        terminal.say(f"{moment(memory['created_at'])}  {memory['question']}", "bold")
        if memory["answer_summary"]:
            terminal.say(f"    {memory['answer_summary']}")
    if not found:
        terminal.say("Nothing is remembered.")


def forget(api: Api, terminal: Terminal, given: argparse.Namespace) -> None:
    """Forget everything. Threads stay."""
    terminal.confirm("Forget everything that is remembered of your questions?", is_sure=given.yes)
    forgotten = api.call("DELETE", "/memory")
    terminal.result(forgotten, f"{forgotten['deleted']} questions are forgotten.")
