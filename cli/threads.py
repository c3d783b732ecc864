"""`threads`: the user's conversations. `memory`: memories of earlier questions."""

from typing import Annotated

import typer

from cli.answers import print_answer
from cli.api import Api, segment
from cli.commands import Call, LimitOption, ThreadArgument, YesOption, memory, option, threads
from cli.errors import CommandError
from cli.terminal import moment

_MESSAGES = 20


def thread_id_of(api: Api, name: str) -> str:
    """Return the thread id, resolving `last` to the newest thread.

    Raises:
        CommandError: there is no thread yet.
    """
    if name != "last":
        return name
    threads = api.call("GET", "/threads", params={"limit": 1})["threads"]
    if not threads:
        raise CommandError("You have no threads yet.", "Ask a question first.")
    return str(threads[0]["thread_id"])


@threads.add("list")
def list_threads(call: Call, *, limit: LimitOption = 50) -> None:
    """List threads, newest first."""
    call.terminal.rows(
        call.api.items("/threads", "threads", limit),
        ("Title", "Turns", "Last asked", "Id"),
        lambda one: (one["title"], one["turn_count"], moment(one["updated_at"]), one["thread_id"]),
        nothing="There are no threads.",
    )


@threads.add("show")
def show_thread(
    call: Call,
    thread: ThreadArgument,
    *,
    limit: Annotated[
        int, option("--limit", "N", "Maximum number of questions, counted from the newest")
    ] = 20,
) -> None:
    """Show questions and answers, oldest first."""
    path = f"/threads/{segment(thread_id_of(call.api, thread))}/messages"
    # Pages run backwards in time while turns within a page run forwards, so sort by number.
    turns = sorted(call.api.items(path, "messages", limit), key=lambda message: int(message["number"]))
    if call.terminal.as_json:
        call.terminal.json(turns)
        return
    for message in turns:
        call.terminal.say(f"{message['number']}. {message['question']}", "bold")
        call.terminal.note(f"   {moment(message['created_at'])}, run {message['run_id']}")
        if message.get("answer"):
            print_answer(call.api, call.terminal, message["answer"])
        else:
            call.terminal.say(message.get("error") or message["status"], "yellow")
    if not turns:
        call.terminal.say("The thread has no questions.")


@threads.add("rename")
def rename_thread(
    call: Call, thread: ThreadArgument, title: Annotated[str, typer.Argument(metavar="TITLE")]
) -> None:
    """Rename a thread."""
    path = f"/threads/{segment(thread_id_of(call.api, thread))}"
    renamed = call.api.call("PATCH", path, json={"title": title})
    call.terminal.result(renamed, f"{renamed['thread_id']} is now called {renamed['title']!r}.")


@threads.add("clear")
def clear_thread(call: Call, thread: ThreadArgument, *, yes: YesOption = False) -> None:
    """Delete a thread's questions and answers, but keep the thread."""
    call.terminal.confirm(f"Delete all questions and answers of {thread}?", is_sure=yes)
    cleared = call.api.call("POST", f"/threads/{segment(thread_id_of(call.api, thread))}/clear")
    call.terminal.result(cleared, f"{cleared['thread_id']} is empty.")


@threads.add("delete")
def delete_thread(call: Call, thread: ThreadArgument, *, yes: YesOption = False) -> None:
    """Delete a thread and everything derived from it."""
    call.terminal.confirm(f"Delete {thread} and everything derived from it?", is_sure=yes)
    call.api.call("DELETE", f"/threads/{segment(thread_id_of(call.api, thread))}")
    call.terminal.result({"thread_id": thread, "status": "deleted"}, f"{thread} is deleted.")


@memory.add("list")
def list_memories(call: Call, *, limit: LimitOption = 50) -> None:
    """List memories, newest first."""
    memories = call.api.items("/memory", "memories", limit)
    if call.terminal.as_json:
        call.terminal.json(memories)
        return
    for question in memories:
        call.terminal.say(f"{moment(question['created_at'])}  {question['question']}", "bold")
        if question["answer_summary"]:
            call.terminal.say(f"    {question['answer_summary']}")
    if not memories:
        call.terminal.say("Nothing is remembered.")


@memory.add("forget")
def forget(call: Call, *, yes: YesOption = False) -> None:
    """Delete all memories."""
    call.terminal.confirm("Delete all memories of your questions?", is_sure=yes)
    forgotten = call.api.call("DELETE", "/memory")
    call.terminal.result(forgotten, f"{forgotten['deleted']} memories are deleted.")
