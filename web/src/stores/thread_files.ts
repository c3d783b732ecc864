// Files for the open conversation: sent one after the other, then followed until they have been ingested.
import { signal } from "@preact/signals";
import { change, read, upload } from "../api/request";
import type { RemovedFile, ThreadFile, ThreadFileList, ThreadView, UploadTicket } from "../api/types";
import { turn as turnAddress } from "../routes";
import { t } from "../words/words";
import { forgetTurns, openThread } from "./chat";
import { announce, notify, wordsOf } from "./notices";
import { site } from "./session";
import { refusalOf } from "./uploads";

export interface Sending {
  id: number;
  name: string;
  share: number;
  error: string;
}

export const files = signal<readonly ThreadFile[]>([]);
/** Whether the files of the open thread have been loaded. */
const isLoaded = signal(false);
export const sending = signal<readonly Sending[]>([]);

const AT_ONCE = 5; // limit of the API per question
const FIRST_LOOK_MS = 700;
const LAST_LOOK_MS = 10_000; // longest interval between requests, reached if a file never arrives
let shownThread = "";
let count = 0;
let timer = 0;
let queue: Promise<unknown> = Promise.resolve();

/** Shows the files of a thread. A new thread has none. */
export async function showFiles(threadId: string): Promise<void> {
  if (threadId === shownThread) return;
  shownThread = threadId;
  forgetFiles();
  if (threadId) await look();
}

export function forgetFiles(): void {
  clearTimeout(timer);
  files.value = sending.value = [];
  isLoaded.value = false;
}

const ID_CHARS = 32; // ids of a conversation's files; other documents have 24

/** Whether an answer cites a file of the open conversation that has expired. */
export function isGone(docId: string): boolean {
  return docId.length === ID_CHARS && isLoaded.value && !files.value.some((file) => file.doc_id === docId);
}

/** Resolves when all files have been sent, so that a question finds them. */
export const allSent = () => queue;

export const isOver = (file: ThreadFile) => file.status === "ready" || file.status === "failed";

/** Loads the list of files repeatedly until all have been ingested. */
async function look(delay = FIRST_LOOK_MS): Promise<void> {
  clearTimeout(timer);
  const threadId = shownThread;
  const page = await read<ThreadFileList>(`/api/threads/${threadId}/files`);
  if (threadId !== shownThread) return;
  const working = files.value.filter((file) => !isOver(file)).map((file) => file.doc_id);
  files.value = page.files;
  isLoaded.value = true;
  for (const file of page.files)
    if (isOver(file) && working.includes(file.doc_id)) announce(t(file.status === "ready" ? "files.read" : "files.failed", { name: file.filename }));
  if (page.files.every(isOver)) return;
  timer = window.setTimeout(() => void look(Math.min(delay * 1.2, LAST_LOOK_MS)).catch(() => {}), delay);
}

/** Adds files to the open conversation. A new conversation is created for them. */
export function attachFiles(chosen: readonly File[]): Promise<unknown> {
  if (chosen.length > AT_ONCE) notify(t("files.tooMany", { count: AT_ONCE }), true);
  const added = chosen.slice(0, AT_ONCE).map((file) => ({ file, one: { id: (count += 1), name: file.name, share: 0, error: refusalOf(file) } }));
  sending.value = [...sending.value, ...added.map(({ one }) => one)];
  for (const { file, one } of added) if (!one.error) queue = queue.then(() => send(one, file));
  return queue;
}

async function send(one: Sending, file: File): Promise<void> {
  try {
    const path = `/api/threads/${openThread.value || (await beginThread())}/files`;
    const progress = (share: number) => set(one.id, { share });
    if (file.size > site.value.max_request_bytes) {
      const ticket = await change<UploadTicket>("POST", `${path}/uploads`, { filename: file.name, size_bytes: file.size });
      await upload(ticket.method, ticket.url, file, ticket.headers, progress, new AbortController().signal);
    } else {
      const form = new FormData();
      form.append("file", file);
      await upload("POST", path, form, { "idempotency-key": crypto.randomUUID() }, progress, new AbortController().signal);
    }
    await look();
    dismiss(one.id);
  } catch (error) {
    set(one.id, { error: wordsOf(error) });
    announce(`${file.name}: ${wordsOf(error)}`);
  }
}

async function beginThread(): Promise<string> {
  const { thread_id } = await change<ThreadView>("POST", "/api/threads", {});
  shownThread = openThread.value = thread_id;
  turnAddress({ thread: thread_id, run: "", cite: 0 }, "replaceState");
  return thread_id;
}

/** Removes a file from the conversation, with the questions asked since it was added. */
export async function removeFile(file: ThreadFile): Promise<void> {
  const removed = await change<RemovedFile>("DELETE", `/api/threads/${shownThread}/files/${file.doc_id}`);
  files.value = files.value.filter((one) => one.doc_id !== file.doc_id);
  if (removed.cleared) forgetTurns();
  announce(t("files.removed", { name: file.filename }));
}

export function dismiss(id: number): void {
  sending.value = sending.value.filter((one) => one.id !== id);
}

function set(id: number, changed: Partial<Sending>): void {
  sending.value = sending.value.map((one) => (one.id === id ? { ...one, ...changed } : one));
}

/** Returns the files of a paste. Pictures from the clipboard all have one name, which would replace each other. */
export function filesOfPaste(data: DataTransfer | null): File[] {
  const moment = new Date().toISOString().slice(11, 19).replaceAll(":", "");
  return [...(data?.files ?? [])].map((file) => (/^image\.\w+$/.test(file.name) ? new File([file], file.name.replace(".", `-${moment}.`), { type: file.type }) : file));
}
