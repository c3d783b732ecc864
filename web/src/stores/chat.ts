// The open thread: its turns, its active runs and the draft of the next question.
import { computed, signal, type Signal } from "@preact/signals";
import { CallError, change, read, send } from "../api/request";
import type { Citation, Feedback, MessageList, RunView, ThreadMessage, ThreadView } from "../api/types";
import { citationsOf, isOver, newRun, type RunState } from "../model/run";
import { route, turn as turnAddress } from "../routes";
import { t } from "../words/words";
import { attach, leaving, readRecord, stopFollowing } from "./following";
import { announce, wordsOf } from "./notices";
import { loadThreads, noteStatus } from "./threads";

/** A question with its answer, as stored in the thread or as received in events. */
export interface Turn {
  key: string;
  question: string;
  askedAt: string;
  /** Empty while the question is being sent. */
  runId: string;
  /** Id of the run that this one replaces as a newer version; empty = none. */
  replaces: string;
  message: ThreadMessage | null;
  /** State from live events, for active runs and for runs that ended without an answer. */
  run: Signal<RunState> | null;
  /** State from the stored events of an answered run, loaded on demand; null = not loaded or expired. */
  record: Signal<RunState | null>;
  feedback: Signal<Feedback | null>;
}

export interface Scope {
  agent: string; // empty = none
  project: string;
  documents: readonly { id: string; name: string }[];
}

export const NO_SCOPE: Scope = { agent: "", project: "", documents: [] };
const DRAFT = "groundwork.draft"; // per tab: keeps the draft while the user signs in again
const QUEUE = "groundwork.queue"; // per tab, by thread
const TURNS = 20;

export const turns = signal<readonly Turn[]>([]);
export const openThread = signal("");
export const isLoading = signal(false);
export const loadError = signal("");
export const hasOlder = signal(false);
export const draft = signal(sessionStorage.getItem(DRAFT) ?? "");
export const isDeep = signal(false);
export const scope = signal<Scope>(NO_SCOPE);
export const sendError = signal("");
/** The question being edited. `through` is the run before it, the last one that a new thread would share. */
export const editing = signal<{ through: string; turn: Turn } | null>(null);

const queues = signal<Readonly<Record<string, readonly string[]>>>(JSON.parse(sessionStorage.getItem(QUEUE) ?? "{}"));
let cursor: string | null = null;
let isBranching = false;
let idempotencyKey = ""; // of the draft until its run is known, so that resending cannot ask it twice

export function write(text: string): void {
  draft.value = text;
  sessionStorage.setItem(DRAFT, text);
  idempotencyKey = "";
}

/** Opens a thread. An empty id opens a new thread, which is created with its first question. */
export async function showThread(threadId: string): Promise<void> {
  if (threadId === openThread.value && (threadId || !turns.value.length)) return;
  stopFollowing();
  if (waitingTurn.value && !editing.value) write(""); // the text replies to a clarification of another thread
  openThread.value = threadId;
  turns.value = [];
  loadError.value = sendError.value = "";
  editing.value = null;
  chosen.value = {};
  hasOlder.value = false;
  scope.value = NO_SCOPE;
  if (!threadId) return;
  isLoading.value = true;
  const stopped = leaving();
  try {
    const page = await read<MessageList>(`/api/threads/${threadId}/messages?limit=${TURNS}`, { signal: stopped });
    await receive(page);
  } catch (error) {
    if (openThread.value === threadId && !stopped.aborted) loadError.value = wordsOf(error);
  } finally {
    if (openThread.value === threadId) isLoading.value = false;
    askQueued();
  }
}

export async function loadOlder(): Promise<void> {
  const threadId = openThread.value;
  if (cursor === null) return;
  const page = await read<MessageList>(`/api/threads/${threadId}/messages?limit=${TURNS}&cursor=${cursor}`);
  if (openThread.value === threadId) await receive(page);
}

/** Adds older turns, and loads the turns that newer versions replace. */
async function receive(page: MessageList): Promise<void> {
  cursor = page.cursor;
  hasOlder.value = cursor !== null;
  turns.value = [...page.messages.map(turnOf), ...turns.value];
  const runs = new Set(turns.value.map((turn) => turn.runId));
  if (turns.value.some((turn) => turn.replaces && !runs.has(turn.replaces))) await loadOlder();
}

function turnOf(message: ThreadMessage): Turn {
  const isLive = !isOver(message.status);
  const turn: Turn = {
    key: message.run_id,
    question: message.question,
    askedAt: message.created_at,
    runId: message.run_id,
    replaces: message.replaces ?? "",
    message: isLive ? null : message,
    run: isLive ? signal(newRun(message.run_id, openThread.value)) : null,
    record: signal(null),
    feedback: signal(message.feedback),
  };
  if (turn.run) void attachTo(turn.run);
  else if (!message.answer) void loadRecord(turn); // recovers the text streamed before the run ended
  return turn;
}

/** Loads the stored events of a finished run. */
export async function loadRecord(turn: Turn): Promise<void> {
  if (!turn.run && !turn.record.value) turn.record.value = await readRecord(turn.runId, openThread.value);
}

/** Follows a run, then asks the next queued question. */
async function attachTo(run: Signal<RunState>): Promise<void> {
  await attach(run);
  if (isOver(run.value.status)) askQueued();
}

/** A turn on display, its position among the versions of its question (from 0), and the key of the turn before. */
export interface Shown {
  turn: Turn;
  versions: readonly Turn[];
  at: number;
  before: string;
}

/** The keys of the versions chosen for display, by the key of the turn before. The default leads to the newest turn. */
const chosen = signal<Readonly<Record<string, string>>>({});

/** The turns on display. Turns that follow a version of a question are shown only with that version. */
export const shown = computed(() => {
  const following = new Map<string, Turn[]>(); // by the key of the turn before; "" = none
  const before = new Map<string, string>(); // the same key by run
  const parents = new Map<string, string>(); // and by turn
  let last = "";
  for (const turn of turns.value) {
    const key = before.get(turn.replaces) ?? last;
    following.set(key, [...(following.get(key) ?? []), turn]);
    if (turn.runId) before.set(turn.runId, key);
    parents.set(turn.key, key);
    last = turn.key;
  }
  const newest = new Set<string>(); // the newest turn and all turns before it
  for (let key = last; key; key = parents.get(key)!) newest.add(key);
  const path: Shown[] = [];
  for (let key = "", all; (all = following.get(key)); ) {
    const wanted = all.findIndex((turn) => turn.key === chosen.value[key]);
    const current = all.findIndex((turn) => newest.has(turn.key));
    const at = [wanted, current, all.length - 1].find((one) => one >= 0)!;
    path.push({ turn: all[at]!, versions: all, at, before: key });
    key = all[at]!.key;
  }
  return path;
});

/** Displays a version of a question, and the turns that follow it. */
export function page({ versions, before }: Shown, at: number): void {
  chosen.value = { ...chosen.value, [before]: versions[at]!.key };
}

/** Puts a question into the composer for editing. See `ask` for where it is sent. */
export async function edit(turn: Turn): Promise<void> {
  write(turn.question);
  if (hasOlder.value && shown.value[0]!.turn === turn) await loadOlder();
  const at = shown.value.findIndex((one) => one.turn === turn);
  editing.value = { through: shown.value[at - 1]?.turn.runId ?? "", turn };
}

/** Opens a copy of the thread in which the edited question is asked. This thread keeps all turns. */
async function branch(through: string): Promise<void> {
  const kept = scope.value;
  let threadId = "";
  if (through) {
    const body = { branch: { thread_id: openThread.value, run_id: through } };
    const headers = { "idempotency-key": `branch-${idempotencyKey}` };
    threadId = (await change<ThreadView>("POST", "/api/threads", body, headers)).thread_id;
  }
  await showThread(threadId);
  if (threadId) turnAddress({ thread: threadId, run: "", cite: 0 });
  scope.value = kept;
}

/** The turn that waits for the user's reply. The composer's next message answers it. */
export const waitingTurn = computed(() => turns.value.findLast((turn) => turn.run?.value.ask));

/** The newest active turn. */
export const workingTurn = computed(() => turns.value.findLast((turn) => turn.run?.value.status === "running"));

/** Replies to the clarifying question with the composer's text: an option's number or free text. */
async function reply(turn: Turn): Promise<void> {
  const text = draft.value.trim();
  const option = turn.run!.value.ask!.options.find(({ number }) => String(number) === text);
  sendError.value = "";
  try {
    await choose(turn.runId, option ? { choice: option.number } : { text });
    write("");
  } catch (error) {
    sendError.value = wordsOf(error);
    announce(sendError.value);
  }
}

/**
 * Sends the composer's text as a question or as the reply to a clarifying question.
 * An edited question is sent to a new thread. If this thread has files, it stays here as a new version, because
 * threads don't share files.
 */
export async function ask(hasFiles = false): Promise<void> {
  const question = draft.value.trim();
  if (!question || isSending()) return;
  if (editing.value) return hasFiles ? askVersion(question, editing.value.turn) : askOtherwise(question, editing.value.through);
  if (waitingTurn.value) return reply(waitingTurn.value);
  if (workingTurn.value) return enqueue(question);
  idempotencyKey ||= crypto.randomUUID();
  if (await submit(question, idempotencyKey)) write("");
}

const isSending = () => isBranching || turns.value.some((turn) => !turn.runId);

/** Asks a question again. Earlier answers, with the turns after them, remain available as versions. */
export async function askAgain(turn: Turn): Promise<void> {
  if (!isSending() && !workingTurn.value) await submit(turn.question, crypto.randomUUID(), turn);
}

/** Asks an edited question in this thread. The original remains available as a version. */
async function askVersion(question: string, turn: Turn): Promise<void> {
  idempotencyKey ||= crypto.randomUUID();
  if (!(await submit(question, idempotencyKey, turn))) return;
  write("");
  editing.value = null;
}

/** Asks an edited question in a new thread. */
async function askOtherwise(question: string, through: string): Promise<void> {
  idempotencyKey ||= crypto.randomUUID();
  isBranching = true;
  sendError.value = "";
  try {
    await branch(through);
  } catch (error) {
    return fail(error);
  } finally {
    isBranching = false;
  }
  if (await submit(question, idempotencyKey, null, "pushState")) write("");
  else if (!through) turnAddress({ thread: "", run: "", cite: 0 });
}

function fail(error: unknown): void {
  sendError.value = wordsOf(error);
  announce(sendError.value);
}

/** Sends a question to the open thread, as a version of `replaced` if given. Returns whether it was accepted. */
async function submit(
  question: string,
  key: string,
  replaced: Turn | null = null,
  how: "pushState" | "replaceState" = "replaceState",
): Promise<boolean> {
  const threadId = openThread.value;
  const pending = pendingTurn(question, replaced?.runId ?? "");
  turns.value = [...turns.value, pending];
  chosen.value = {};
  sendError.value = "";
  try {
    const run = await begin(pending, threadId, key);
    if (openThread.value !== threadId) return true;
    openThread.value = run.thread_id;
    const asked: Turn = { ...pending, runId: run.run_id, run: signal(newRun(run.run_id, run.thread_id)) };
    turns.value = turns.value.map((turn) => (turn === pending ? asked : turn));
    if (!threadId && route.value.view === "chat") turnAddress({ thread: run.thread_id, run: "", cite: 0 }, how);
    noteStatus(run.thread_id, "running");
    announce(t("announce.started"));
    void attachTo(asked.run!);
    if (turns.value.length === 1 || how === "pushState") void loadThreads().catch(() => {});
    return true;
  } catch (error) {
    turns.value = turns.value.filter((turn) => turn !== pending);
    fail(error);
    return false;
  }
}

/** Questions to ask after the current answer. They are kept per tab, even while another thread is open. */
export const queued = computed(() => queues.value[openThread.value] ?? []);

function setQueue(questions: readonly string[]): void {
  const { [openThread.value]: _, ...others } = queues.value;
  queues.value = questions.length ? { ...others, [openThread.value]: questions } : others;
  sessionStorage.setItem(QUEUE, JSON.stringify(queues.value));
}

function enqueue(question: string): void {
  setQueue([...queued.value, question]);
  write("");
  announce(t("announce.queued"));
}

/** Removes a question from the queue. */
export function unqueue(question: string): void {
  setQueue(queued.value.filter((one) => one !== question));
}

/** Asks the next queued question, unless a run is active or waits for a reply. */
function askQueued(): void {
  const [next, ...rest] = queued.value;
  if (next === undefined || isSending() || workingTurn.value || waitingTurn.value) return;
  setQueue(rest);
  void submit(next, crypto.randomUUID()).then((isTaken) => {
    if (!isTaken && !draft.value) write(next);
  });
}

async function begin(turn: Turn, threadId: string, key: string): Promise<RunView> {
  const body = {
    question: turn.question,
    thread_id: threadId || null,
    replaces: turn.replaces || null,
    agent: scope.value.agent || null,
    project_id: scope.value.project || null,
    doc_ids: scope.value.documents.map((document) => document.id),
    deep: isDeep.value,
    timezone: timezone(),
  };
  const headers = { prefer: "respond-async", "idempotency-key": key };
  return change<RunView>("POST", "/api/chat", body, headers);
}

/** The time zone that defines "today"; null if the browser does not report one. */
function timezone(): string | null {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name && name !== "Etc/Unknown" ? name : null;
}

function pendingTurn(question: string, replaces: string): Turn {
  return {
    key: crypto.randomUUID(),
    question,
    askedAt: new Date().toISOString(),
    runId: "",
    replaces,
    message: null,
    run: null,
    record: signal(null),
    feedback: signal(null),
  };
}

export async function cancel(runId: string): Promise<void> {
  try {
    await change("POST", `/api/runs/${runId}/cancel`);
  } catch (error) {
    if (!(error instanceof CallError && error.status === 409)) throw error; // the run has just ended
  }
}

export async function choose(runId: string, answer: { choice: number } | { text: string }): Promise<void> {
  await change("POST", `/api/runs/${runId}/answer`, answer);
}

export async function rate(turn: Turn, body: Omit<Feedback, "given_at"> | null): Promise<void> {
  const path = `/api/runs/${turn.runId}/feedback`;
  if (body) turn.feedback.value = await change<Feedback>("PUT", path, body);
  else {
    await send("DELETE", path);
    turn.feedback.value = null;
  }
}

/** Discards all turns and their streams. */
export function forgetTurns(): void {
  stopFollowing();
  turns.value = [];
  hasOlder.value = false;
}

export function leaveThread(): void {
  forgetTurns();
  openThread.value = "";
  scope.value = NO_SCOPE;
}

/** Returns the citations of a loaded turn. */
export function citationsOfTurn(turn: Turn): readonly Citation[] {
  if (turn.run) return citationsOf(turn.run.value);
  return turn.message?.answer?.citations ?? (turn.record.value ? citationsOf(turn.record.value) : []);
}
