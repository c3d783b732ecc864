// The open thread: its turns, the runs at work in it, and the question that is being written.
import { signal, type Signal } from "@preact/signals";
import { CallError, change, read, send } from "../api/request";
import { follow, type Frame } from "../api/stream";
import type { Citation, Feedback, MessageList, RunView, ThreadMessage, ThreadView } from "../api/types";
import { citationsOf, isOver, newRun, reduce, type RunState } from "../model/run";
import { route, turn as turnAddress } from "../routes";
import { t } from "../words/words";
import { announce, wordsOf } from "./notices";
import { loadThreads, noteStatus } from "./threads";

/** A question with its answer: as the thread keeps it, or as its events tell it. */
export interface Turn {
  key: string;
  question: string;
  askedAt: string;
  /** Empty while the question is being sent. */
  runId: string;
  message: ThreadMessage | null;
  run: Signal<RunState> | null;
  feedback: Signal<Feedback | null>;
}

export interface Scope {
  agent: string; // "" = none
  project: string;
  documents: readonly { id: string; name: string }[];
}

export const NO_SCOPE: Scope = { agent: "", project: "", documents: [] };
const DRAFT = "groundwork.draft"; // of this tab; one's own words, kept while signing in again
const TURNS = 20;

export const turns = signal<readonly Turn[]>([]);
export const openThread = signal("");
export const isLoading = signal(false);
export const loadError = signal("");
export const isConnected = signal(true);
export const hasOlder = signal(false);
export const draft = signal(sessionStorage.getItem(DRAFT) ?? "");
export const isDeep = signal(false);
export const scope = signal<Scope>(NO_SCOPE);
export const sendError = signal("");
/** An earlier question is being asked otherwise: in a new thread with the turns before it, through this run. */
export const editing = signal<{ through: string } | null>(null);

let cursor: string | null = null;
let streams = new AbortController();
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
  streams.abort();
  streams = new AbortController();
  openThread.value = threadId;
  turns.value = [];
  loadError.value = sendError.value = "";
  editing.value = null;
  hasOlder.value = false;
  scope.value = NO_SCOPE;
  if (!threadId) return;
  isLoading.value = true;
  const { signal: leaving } = streams;
  try {
    const page = await read<MessageList>(`/api/threads/${threadId}/messages?limit=${TURNS}`, { signal: leaving });
    receive(page);
  } catch (error) {
    if (openThread.value === threadId && !leaving.aborted) loadError.value = wordsOf(error);
  } finally {
    if (openThread.value === threadId) isLoading.value = false;
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
    message: isLive ? null : message,
    run: isLive ? signal(newRun(message.run_id, openThread.value)) : null,
    feedback: signal(message.feedback),
  };
  if (turn.run) void attach(turn.run);
  return turn;
}

/** Puts a question into the composer. The newest is asked again below; an earlier one begins a new thread. */
export async function edit(turn: Turn): Promise<void> {
  write(turn.question);
  if (turns.value[0] === turn && hasOlder.value) await loadOlder();
  const at = turns.value.indexOf(turn);
  const isNewest = at === turns.value.length - 1;
  editing.value = isNewest ? null : { through: turns.value[at - 1]?.runId ?? "" };
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

/** Asks what stands in the composer. */
export async function ask(): Promise<void> {
  const question = draft.value.trim();
  if (!question || isBranching || turns.value.some((turn) => !turn.runId)) return;
  idempotencyKey ||= crypto.randomUUID();
  const from = editing.value;
  if (from) {
    isBranching = true;
    sendError.value = "";
    try {
      await branch(from.through);
    } catch (error) {
      sendError.value = wordsOf(error);
      return announce(sendError.value);
    } finally {
      isBranching = false;
    }
  }
  const threadId = openThread.value;
  const pending = pendingTurn(question);
  turns.value = [...turns.value, pending];
  sendError.value = "";
  try {
    const run = await begin(question, threadId);
    write("");
    if (openThread.value !== threadId) return;
    openThread.value = run.thread_id;
    const asked: Turn = { ...pending, runId: run.run_id, run: signal(newRun(run.run_id, run.thread_id)) };
    turns.value = turns.value.map((turn) => (turn === pending ? asked : turn));
    if (!threadId && route.value.view === "chat") turnAddress({ thread: run.thread_id, run: "", cite: 0 }, from ? "pushState" : "replaceState");
    noteStatus(run.thread_id, "running");
    announce(t("announce.started"));
    void attach(asked.run!);
    if (!threadId || from) void loadThreads().catch(() => {});
  } catch (error) {
    turns.value = turns.value.filter((turn) => turn !== pending);
    if (from && !threadId) turnAddress({ thread: "", run: "", cite: 0 });
    sendError.value = wordsOf(error);
    announce(sendError.value);
  }
}

async function begin(question: string, threadId: string): Promise<RunView> {
  const body = {
    question,
    thread_id: threadId || null,
    agent: scope.value.agent || null,
    project_id: scope.value.project || null,
    doc_ids: scope.value.documents.map((document) => document.id),
    deep: isDeep.value,
    timezone: timezone(),
  };
  const headers = { prefer: "respond-async", "idempotency-key": idempotencyKey };
  return change<RunView>("POST", "/api/chat", body, headers);
}

/** Where "today" is; null where the browser does not know. */
function timezone(): string | null {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return name && name !== "Etc/Unknown" ? name : null;
}

function pendingTurn(question: string): Turn {
  return {
    key: crypto.randomUUID(),
    question,
    askedAt: new Date().toISOString(),
    runId: "",
    message: null,
    run: null,
    feedback: signal(null),
  };
}

/** Follows a run to its end. Events are shown once a frame of the screen, however fast they come. */
async function attach(run: Signal<RunState>): Promise<void> {
  const { signal: stopped } = streams;
  let waiting: Frame[] = [];
  let isScheduled = false;
  const flush = () => {
    isScheduled = false;
    if (!waiting.length || stopped.aborted) return;
    const before = run.value;
    run.value = waiting.reduce(reduce, before);
    waiting = [];
    tell(before, run.value);
  };
  try {
    await follow({
      path: `/api/runs/${run.value.runId}/events`,
      after: run.value.lastId,
      gapless: true,
      signal: stopped,
      onConnection: (connected) => (isConnected.value = connected),
      onFrame: (frame) => {
        waiting.push(frame);
        if (!isScheduled) {
          isScheduled = true;
          // A hidden tab draws no frames.
          if (document.hidden) setTimeout(flush);
          else requestAnimationFrame(flush);
        }
        return frame.event === "complete" || frame.event === "error";
      },
    });
    flush();
  } catch (error) {
    flush();
    if (stopped.aborted) return;
    const message = wordsOf(error);
    const type = error instanceof CallError ? error.code : "Error";
    run.value = { ...run.value, status: "failed", ask: null, error: { type, message, hints: [] } };
  }
}

function tell(before: RunState, after: RunState): void {
  if (before.status === after.status) return;
  noteStatus(after.threadId, after.status);
  if (after.status === "waiting") announce(after.ask?.question ?? "");
  if (after.status === "completed") announce(t("announce.completed", { count: citationsOf(after).length }));
  if (after.status === "failed") announce(t("announce.failed"));
  if (after.status === "cancelled") announce(t("announce.cancelled"));
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
  streams.abort();
  streams = new AbortController();
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
  return turn.message?.answer?.citations ?? [];
}
