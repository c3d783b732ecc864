// The only module that reads server-sent events. After a break or a deliberate close, a stream resumes with the
// next event, so its reader sees every event once and in order.
import { CallError, send } from "./request";

export interface Frame {
  id: number;
  event: string;
  data: unknown;
}

export interface Following {
  path: string;
  /** Id of the last event received; 0 = start with the first. */
  after: number;
  /** Whether ids are consecutive, as in a run, so that a gap means a lost event. */
  gapless: boolean;
  signal: AbortSignal;
  /** Returns true for the last event. */
  onFrame(frame: Frame): boolean | void;
  onConnection?(connected: boolean): void;
}

const SILENCE_MS = 40_000; // the server sends a heartbeat every 15 s
const HIDDEN_MS = 60_000; // a browser allows six connections for all tabs, so hidden tabs release theirs
const SLOWEST_MS = 15_000;

/** Follows a stream and resolves at the last event. Throws CallError if the stream cannot be resumed. */
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

/** Yields the events of a response body as they arrive. */
export async function* framesOf(body: ReadableStream<Uint8Array>, connection?: { heard(): void }): AsyncGenerator<Frame> {
  const feed = frameReader();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      connection?.heard();
      yield* feed(decoder.decode(value, { stream: true }));
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** Returns a function that takes the next part of a stream and returns the events that it completes (HTML 9.2.6). */
function frameReader(): (text: string) => Frame[] {
  let rest = "";
  let id = "";
  let event = "";
  let data: string[] = [];
  return (text) => {
    const frames: Frame[] = [];
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/); // a final CR may be half of a CRLF
    rest = lines.pop()!;
    for (const line of lines) {
      const [, field, value] = /^([^:]*)(?:: ?)?(.*)$/s.exec(line)!;
      if (field === "id") id = value!;
      else if (field === "event") event = value!;
      else if (field === "data") data.push(value!);
      else if (!line) {
        if (data.length) frames.push({ id: Number(id), event, data: JSON.parse(data.join("\n")) });
        event = "";
        data = [];
      }
    }
    return frames;
  };
}

/** Aborts a request when its reader cancels, the stream is silent or the tab stays hidden too long. */
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
    // A tab opened in the background starts at once; only tabs hidden for long release their connection.
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
