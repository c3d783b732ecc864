// The open thread: its turns, the runs at work in it, and the question that is being written.
import { computed, signal, type Signal } from "@preact/signals";
import { CallError, change, read, send } from "../api/request";
import type { Citation, Feedback, MessageList, RunView, ThreadMessage, ThreadView } from "../api/types";
import { citationsOf, isOver, newRun, type RunState } from "../model/run";
import { route, turn as turnAddress } from "../routes";
import { t } from "../words/words";
import { attach, leaving, readRecord, stopFollowing } from "./following";
import { announce, wordsOf } from "./notices";
import { loadThreads, noteStatus } from "./threads";

/** A question with its answer: as the thread keeps it, or as its events tell it. */
export interface Turn {
  key: string;
  question: string;
  askedAt: string;
  /** Empty while the question is being sent. */
  runId: string;
  /** The run whose question this one asks again; empty = none. */
  replaces: string;
  message: ThreadMessage | null;
  /** As its events tell it: of a run at work, and of one that ended without an answer. */
  run: Signal<RunState> | null;
  /** The events of an answered run, once somebody asks how it was answered; null = not read, or kept no more. */
  record: Signal<RunState | null>;
  feedback: Signal<Feedback | null>;
}

export interface Scope {
  agent: string; // "" = none
  project: string;
  documents: readonly { id: string; name: string }[];
}

export const NO_SCOPE: Scope = { agent: "", project: "", documents: [] };
const DRAFT = "groundwork.draft"; // of this tab; one's own words, kept while signing in again
const QUEUE = "groundwork.queue"; // of this tab, by thread
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
/** An earlier question is being asked otherwise: in a new thread with the turns before it, through this run. */
export const editing = signal<{ through: string } | null>(null);

const queues = signal<Readonly<Record<string, readonly string[]>>>(JSON.parse(sessionStorage.getItem(QUEUE) ?? "{}"));
let cursor: string | null = null;
let isBranching = false;
let idempotencyKey = ""; // of the draft until its run is known: sent twice, it is asked once

export function write(text: string): void {
  draft.value = text;
  sessionStorage.setItem(DRAFT, text);
  idempotencyKey = "";
}

/** Shows a thread; the empty one begins with its first question. */
export async function showThread(threadId: string): Promise<void> {
  if (threadId === openThread.value && (threadId || !turns.value.length)) return;
  stopFollowing();
  openThread.value = threadId;
  turns.value = [];
  loadError.value = sendError.value = "";
  editing.value = null;
  hasOlder.value = false;
  scope.value = NO_SCOPE;
  if (!threadId) return;
  isLoading.value = true;
  const stopped = leaving();
  try {
    const page = await read<MessageList>(`/api/threads/${threadId}/messages?limit=${TURNS}`, { signal: stopped });
    receive(page);
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
  if (openThread.value === threadId) receive(page);
}

function receive(page: MessageList): void {
  cursor = page.cursor;
  hasOlder.value = cursor !== null;
  turns.value = [...page.messages.map(turnOf), ...turns.value];
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
  else if (!message.answer) void loadRecord(turn); // the text that was streamed before it ended
  return turn;
}

/** Reads the events of a turn's run that has ended. */
export async function loadRecord(turn: Turn): Promise<void> {
  if (!turn.run && !turn.record.value) turn.record.value = await readRecord(turn.runId, openThread.value);
}

/** Follows a run, and then asks what is queued. */
async function attachTo(run: Signal<RunState>): Promise<void> {
  await attach(run);
  if (isOver(run.value.status)) askQueued();
}

/** The versions of each turn: a question that was asked again in its place comes after what it replaces. */
export const versions = computed(() => {
  const byRun = new Map<string, Turn[]>();
  const all: Turn[][] = [];
  for (const turn of turns.value) {
    const before = byRun.get(turn.replaces);
    if (before) before.push(turn);
    else all.push([turn]);
    if (turn.runId) byRun.set(turn.runId, before ?? all.at(-1)!);
  }
  return all;
});

/** Puts a question into the composer: sent again, it begins a new thread with the turns before it. */
export async function edit(turn: Turn): Promise<void> {
  write(turn.question);
  const isVersion = (one: Turn[]) => one.includes(turn);
  if (hasOlder.value && isVersion(versions.value[0]!)) await loadOlder();
  const at = versions.value.findIndex(isVersion);
  editing.value = { through: versions.value[at - 1]?.at(-1)?.runId ?? "" };
}

/** Opens the thread in which an earlier question is asked otherwise; no turn of this one is lost. */
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

/** The turn that waits for its owner's reply: what is sent from the composer answers it. */
export const waitingTurn = computed(() => turns.value.findLast((turn) => turn.run?.value.ask));

/** The newest turn that is being answered. */
export const workingTurn = computed(() => turns.value.findLast((turn) => turn.run?.value.status === "running"));

/** Replies to the clarifying question with what stands in the composer: the number of an option, or words. */
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

/** Sends what stands in the composer: a question, or the reply to a clarifying one. */
export async function ask(): Promise<void> {
  const question = draft.value.trim();
  if (!question || isSending()) return;
  if (editing.value) return askOtherwise(question, editing.value.through);
  if (waitingTurn.value) return reply(waitingTurn.value);
  if (workingTurn.value) return enqueue(question);
  idempotencyKey ||= crypto.randomUUID();
  if (await submit(question, idempotencyKey)) write("");
}

const isSending = () => isBranching || turns.value.some((turn) => !turn.runId);

/** Asks the newest question again. Its earlier answers stay, as versions to page through. */
export async function askAgain(turn: Turn): Promise<void> {
  if (!isSending() && !workingTurn.value) await submit(turn.question, crypto.randomUUID(), turn);
}

/** Asks an edited question in a thread of its own. */
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

/** Sends a question to the open thread, as a version of `replaced` if given. Returns whether it was taken. */
async function submit(
  question: string,
  key: string,
  replaced: Turn | null = null,
  how: "pushState" | "replaceState" = "replaceState",
): Promise<boolean> {
  const threadId = openThread.value;
  const pending = pendingTurn(question, replaced?.runId ?? "");
  turns.value = [...turns.value, pending];
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

/** Questions that wait until the one before is answered. They stay in this tab, also while another thread is open. */
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

/** Takes a question out of the queue. */
export function unqueue(question: string): void {
  setQueue(queued.value.filter((one) => one !== question));
}

/** Asks the first of the queue, unless something is at work or waits for a reply. */
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

/** Where "today" is; null where the browser does not know. */
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
    if (!(error instanceof CallError && error.status === 409)) throw error; // it has just ended
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

/** After its turns were cleared. */
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

/** The citation of a turn that is loaded. */
export function citationsOfTurn(turn: Turn): readonly Citation[] {
  if (turn.run) return citationsOf(turn.run.value);
  return turn.message?.answer?.citations ?? (turn.record.value ? citationsOf(turn.record.value) : []);
}
