// The list of threads, its search results, and the threads with an active run.
import { computed, signal } from "@preact/signals";
import { change, read, send } from "../api/request";
import type { ThreadList, ThreadView } from "../api/types";

export const threads = signal<readonly ThreadView[]>([]);
export const threadSearch = signal("");
const cursor = signal<string | null>(null);
export const hasMoreThreads = computed(() => cursor.value !== null);

/** Statuses observed by this page since the list was loaded, by thread. */
export const seenStatus = signal<Readonly<Record<string, string>>>({});

let changes = 0; // number of thread changes made or seen by this page

export async function loadThreads(): Promise<void> {
  const words = threadSearch.value.trim();
  const before = changes;
  const page = await read<ThreadList>(`/api/threads?limit=50${words ? `&q=${encodeURIComponent(words)}` : ""}`);
  if (words !== threadSearch.value.trim()) return; // a later search finished first
  if (before !== changes) return loadThreads(); // the response may predate the change
  threads.value = page.threads;
  cursor.value = page.cursor;
  seenStatus.value = {};
}

export async function loadMoreThreads(): Promise<void> {
  if (cursor.value === null) return;
  const page = await read<ThreadList>(`/api/threads?limit=50&cursor=${encodeURIComponent(cursor.value)}`);
  const known = new Set(threads.value.map((thread) => thread.thread_id));
  threads.value = [...threads.value, ...page.threads.filter((thread) => !known.has(thread.thread_id))];
  cursor.value = page.cursor;
}

export function noteStatus(threadId: string, status: string): void {
  changes += 1;
  if (threadId) seenStatus.value = { ...seenStatus.value, [threadId]: status };
}

export function statusOf(thread: ThreadView): string {
  return seenStatus.value[thread.thread_id] ?? thread.active_run?.status ?? "";
}

export async function renameThread(thread: ThreadView, title: string): Promise<void> {
  const renamed = await change<ThreadView>("PATCH", `/api/threads/${thread.thread_id}`, { title });
  changes += 1;
  threads.value = threads.value.map((one) => (one.thread_id === renamed.thread_id ? renamed : one));
}

export async function deleteThread(threadId: string): Promise<void> {
  await send("DELETE", `/api/threads/${threadId}`);
  changes += 1;
  threads.value = threads.value.filter((one) => one.thread_id !== threadId);
}

export async function clearThread(threadId: string): Promise<void> {
  await change("POST", `/api/threads/${threadId}/clear`);
}
