"""Searches over all threads of a user, by words or by the questions of a conversation."""

from collections import defaultdict
from collections.abc import Sequence

from shared.access.models import UserContext
from shared.conversations.models import Thread, ThreadList, ThreadTurn, ThreadView
from shared.conversations.thread_store import ThreadStore
from shared.conversations.threads import view_of
from shared.conversations.window import current_turns

# The search covers the last 2,000 threads, more than one person has.
_PAGE_OF_SEARCH, _MOST_PAGES = 100, 20
# Turns of all threads that are searched: half a year at thirty questions a day.
_MOST_TURNS = 5_000


async def find_threads(words: str, user: UserContext, threads: ThreadStore, limit: int) -> ThreadList:
    """Return the threads whose title or questions contain all words of a search, also as parts of longer
    words. The most recently used threads come first.
    """
    terms = words.casefold().split()
    turns_by_thread: defaultdict[str, list[ThreadTurn]] = defaultdict(list)
    for turn in await threads.all_turns(user.user_id, _MOST_TURNS):
        turns_by_thread[turn.thread_id].append(turn)
    matches: list[ThreadView] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await threads.page(user.user_id, _PAGE_OF_SEARCH, cursor)
        matches += [
            view_of(one) for one in page.threads if _holds(one, turns_by_thread[one.thread_id], terms)
        ]
        cursor = page.cursor
        if cursor is None or len(matches) >= limit:
            break
    return ThreadList(threads=tuple(matches[:limit]), count=len(matches[:limit]))


def _holds(thread: Thread, turns: Sequence[ThreadTurn], terms: Sequence[str]) -> bool:
    questions = [turn.question for turn in turns if turn.is_shown_in(thread)]
    text = "\n".join([thread.title, *questions]).casefold()
    return all(word in text for word in terms)


async def thread_with(questions: Sequence[str], user: UserContext, threads: ThreadStore) -> ThreadTurn | None:
    """Return the newest turn of the thread that contains exactly these questions, or None if there is none.

    This serves clients that send a whole conversation instead of a thread id. A question may be missing from
    the turns, because it answered a clarification. The longest match wins, then the newest.
    """
    turns_by_thread: defaultdict[str, list[ThreadTurn]] = defaultdict(list)
    for turn in await shown_turns(user, threads, _MOST_TURNS):
        turns_by_thread[turn.thread_id].append(turn)
    texts = [question.strip() for question in questions]
    # Skip threads with files: clients that send whole conversations must not see answers that may quote the
    # files.
    histories = [
        current_turns(turns)
        for turns in turns_by_thread.values()
        if not any(turn.with_files for turn in turns)
    ]
    matches = [history for history in histories if _contains_exactly(history, texts)]
    best = max(matches, key=lambda history: (len(history), history[-1].asked_at), default=None)
    return best[-1] if best else None


def _contains_exactly(history: Sequence[ThreadTurn], texts: Sequence[str]) -> bool:
    remaining = iter(texts)
    return history[0].question == texts[0] and all(turn.question in remaining for turn in history)


async def shown_turns(user: UserContext, threads: ThreadStore, limit: int) -> list[ThreadTurn]:
    """Return up to `limit` turns of all the user's threads, in arbitrary order. Cleared turns and deleted
    threads are left out.
    """
    present = {
        thread.thread_id: thread async for thread in threads.of_owner(user.user_id) if not thread.is_deleted
    }
    return [
        turn
        for turn in await threads.all_turns(user.user_id, limit)
        if turn.thread_id in present and turn.is_shown_in(present[turn.thread_id])
    ]
