"""`threads`: the user's conversations. `memory`: what is remembered of their questions."""

import argparse

from cli.answers import print_answer
from cli.api import Api, segment
from cli.commands import Tree
from cli.errors import DONE
from cli.newest import thread_id_of
from cli.paging import items_of
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


def list_threads(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print threads."""
    found = items_of(api, "/threads", "threads", given.limit)
    if terminal.as_json:
        terminal.json(found)
        return DONE
    terminal.table(
        ("Title", "Turns", "Last asked", "Id"),
        ((one["title"], one["turn_count"], moment(one["updated_at"]), one["thread_id"]) for one in found),
        nothing="There are no threads.",
    )
    return DONE


def show_thread(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print the newest turns."""
    path = f"/threads/{segment(thread_id_of(api, given.thread))}/messages"
    # Pages lead to older ones, and each is in order itself: they are put together by their numbers.
    found = sorted(items_of(api, path, "messages", given.limit), key=lambda message: int(message["number"]))
    if terminal.as_json:
        terminal.json(found)
        return DONE
    for message in found:
        terminal.say(f"{message['number']}. {message['question']}", "bold")
        terminal.note(f"   {moment(message['created_at'])}, run {message['run_id']}")
        if message.get("answer"):
            print_answer(api, terminal, message["answer"])
        else:
            terminal.say(message.get("error") or message["status"], "yellow")
    if not found:
        terminal.say("Nothing was asked in it.")
    return DONE


def rename_thread(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Rename one."""
    thread = api.call(
        "PATCH", f"/threads/{segment(thread_id_of(api, given.thread))}", json={"title": given.title}
    )
    if terminal.as_json:
        terminal.json(thread)
    else:
        terminal.say(f"{thread['thread_id']} is called {thread['title']!r} now.")
    return DONE


def clear_thread(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Delete its turns."""
    terminal.confirm(f"Delete all questions and answers of {given.thread}?", is_sure=given.yes)
    thread = api.call("POST", f"/threads/{segment(thread_id_of(api, given.thread))}/clear")
    if terminal.as_json:
        terminal.json(thread)
    else:
        terminal.say(f"{thread['thread_id']} is empty.")
    return DONE


def delete_thread(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Delete one."""
    terminal.confirm(f"Delete {given.thread} and everything made of it?", is_sure=given.yes)
    api.call("DELETE", f"/threads/{segment(thread_id_of(api, given.thread))}")
    if terminal.as_json:
        terminal.json({"thread_id": given.thread, "status": "deleted"})
    else:
        terminal.say(f"{given.thread} is deleted.")
    return DONE


def list_memories(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Print what is remembered."""
    found = items_of(api, "/memory", "memories", given.limit)
    if terminal.as_json:
        terminal.json(found)
        return DONE
    for memory in found:
        terminal.say(f"{moment(memory['created_at'])}  {memory['question']}", "bold")
        if memory["answer_summary"]:
            terminal.say(f"    {memory['answer_summary']}")
    if not found:
        terminal.say("Nothing is remembered.")
    return DONE


def forget(api: Api, terminal: Terminal, given: argparse.Namespace) -> int:
    """Forget everything. Threads stay."""
    terminal.confirm("Forget everything that is remembered of your questions?", is_sure=given.yes)
    forgotten = api.call("DELETE", "/memory")
    if terminal.as_json:
        terminal.json(forgotten)
    else:
        terminal.say(f"{forgotten['deleted']} questions are forgotten.")
    return DONE
