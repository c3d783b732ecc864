// Follows the open thread's runs and turns their live or stored events into states.
import { signal, type Signal } from "@preact/signals";
import { CallError } from "../api/request";
import { follow, type Frame } from "../api/stream";
import { citationsOf, isOver, newRun, reduce, type RunState } from "../model/run";
import { t } from "../words/words";
import { announce, wordsOf } from "./notices";
import { noteStatus } from "./threads";

export const isConnected = signal(true);
let streams = new AbortController();

/** Aborted when the user leaves the thread. */
export const leaving = (): AbortSignal => streams.signal;

/** Stops all streams of the thread. */
export function stopFollowing(): void {
  streams.abort();
  streams = new AbortController();
}

const isLast = (frame: Frame) => frame.event === "complete" || frame.event === "error";

/** Returns the state from a finished run's events; null if they expired or the user lost access. */
export async function readRecord(runId: string, threadId: string): Promise<RunState | null> {
  let record = newRun(runId, threadId);
  const onFrame = (frame: Frame) => {
    record = reduce(record, frame);
    return isLast(frame);
  };
  await follow({ path: `/api/runs/${runId}/events`, after: 0, gapless: true, signal: streams.signal, onFrame }).catch(() => {});
  return isOver(record.status) ? record : null;
}

/** Follows a run to its end. Events are rendered at most once per animation frame. */
export async function attach(run: Signal<RunState>): Promise<void> {
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
          // Hidden tabs get no animation frames.
          if (document.hidden) setTimeout(flush);
          else requestAnimationFrame(flush);
        }
        return isLast(frame);
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
