// The only module that reads server-sent events. A stream that breaks, or ends on purpose, is gone on with after
// the last event that was received whole, so its reader sees every event once and in order.
import { createParser } from "eventsource-parser";
import { CallError, send } from "./request";

export interface Frame {
  id: number;
  event: string;
  data: unknown;
}

export interface Following {
  path: string;
  /** The last event that is known already; 0 = from the first. */
  after: number;
  /** Ids of a run have no gaps: one means that something was lost on the way. */
  gapless: boolean;
  signal: AbortSignal;
  /** Returns true for the last event. */
  onFrame(frame: Frame): boolean | void;
  onConnection?(connected: boolean): void;
}

const SILENCE_MS = 40_000; // the server speaks every 15 s
const HIDDEN_MS = 60_000; // a browser has six connections for all tabs: one that nobody looks at gives its own back
const SLOWEST_MS = 15_000;

/** Resolves at the last event. Throws CallError when there is nothing to go on with. */
export async function follow(following: Following): Promise<void> {
  let last = following.after;
  for (let failures = 0; !following.signal.aborted; ) {
    await whenShown(following.signal);
    const connection = new Connection(following.signal);
    let wait = 0;
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last) headers["last-event-id"] = String(last);
      const response = await send("GET", following.path, { headers, signal: connection.signal });
      if (response.status === 204 || !response.body) return;
      following.onConnection?.(true);
      for await (const frame of framesOf(response.body, connection)) {
        if (following.gapless && frame.id <= last) continue;
        if (following.gapless && frame.id !== last + 1) break;
        last = frame.id;
        failures = 0;
        if (following.onFrame(frame)) return;
      }
    } catch (error) {
      if (following.signal.aborted) return;
      if (error instanceof CallError && isFinal(error)) throw error;
      if (!connection.wasHidden) {
        failures += 1;
        following.onConnection?.(false);
      }
      wait = error instanceof CallError ? error.retryAfterS * 1000 : 0;
    } finally {
      connection.close();
    }
    await pause(Math.max(wait, failures ? backOff(failures) : 0), following.signal);
  }
}

function isFinal(error: CallError): boolean {
  return error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429;
}

function backOff(failures: number): number {
  return Math.min(SLOWEST_MS, 250 * 2 ** Math.min(failures, 6)) * (0.5 + Math.random() / 2);
}

/** Events of a body, as they come. */
export async function* framesOf(body: ReadableStream<Uint8Array>, connection?: { heard(): void }): AsyncGenerator<Frame> {
  const ready: Frame[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => ready.push({ id: Number(id), event: event ?? "", data: JSON.parse(data) }),
  });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      connection?.heard();
      parser.feed(decoder.decode(value, { stream: true }));
      yield* ready.splice(0);
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** Aborts a request when its reader gives up, when nothing is heard, and when nobody has looked for long. */
class Connection {
  readonly signal: AbortSignal;
  wasHidden = false;
  private readonly controller = new AbortController();
  private silence = 0;
  private hidden = 0;

  constructor(outer: AbortSignal) {
    this.signal = AbortSignal.any([outer, this.controller.signal]);
    document.addEventListener("visibilitychange", this.look);
    this.heard();
    this.look();
  }

  heard(): void {
    clearTimeout(this.silence);
    this.silence = window.setTimeout(() => this.controller.abort(), SILENCE_MS);
  }

  close(): void {
    clearTimeout(this.silence);
    clearTimeout(this.hidden);
    document.removeEventListener("visibilitychange", this.look);
    this.controller.abort();
  }

  private look = (): void => {
    clearTimeout(this.hidden);
    if (!document.hidden) return;
    this.hidden = window.setTimeout(() => {
      this.wasHidden = true;
      this.controller.abort();
    }, HIDDEN_MS);
  };
}

function whenShown(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    // A tab that is opened in the background begins at once: only a long wait gives its connection back.
    if (!document.hidden || signal.aborted || !waited) {
      waited = true;
      return resolve();
    }
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}
let waited = false;

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!ms || signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    const now = () => (clearTimeout(timer), resolve());
    signal.addEventListener("abort", now, { once: true });
    window.addEventListener("online", now, { once: true });
  });
}
