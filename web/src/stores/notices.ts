// Short messages to the user: shown for a while and announced by a single live region.
import { signal } from "@preact/signals";
import { CallError } from "../api/request";
import { translationOf } from "../words/server";
import { t, type Key } from "../words/words";

export interface Notice {
  id: number;
  text: string;
  isError: boolean;
}

export const notices = signal<readonly Notice[]>([]);
/** Text announced politely by screen readers. The log is for tests. */
export const announcement = signal("");
export const announced: string[] = [];
let count = 0;
const SHOWN_MS = 7000;

export function announce(text: string): void {
  announced.push(text);
  // A repeated text would not be announced; a trailing space makes it different.
  announcement.value = text === announcement.value ? `${text}\u00a0` : text;
}

export function notify(text: string, isError = false): void {
  const notice = { id: (count += 1), text, isError };
  notices.value = [...notices.value, notice];
  announce(text);
  setTimeout(() => dismiss(notice.id), SHOWN_MS);
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** Returns the message for an error: `missing` if the resource is not accessible, else the API's or a generic one. */
export function wordsOf(error: unknown, missing?: Key): string {
  if (!(error instanceof CallError)) {
    console.error(error);
    return t("error.unknown");
  }
  if (error.status === 0) return t("error.offline");
  if (error.status === 401) return t("error.signedOut");
  if (error.status === 412) return t("error.changed");
  if (error.status === 429) return t("error.busy", { seconds: error.retryAfterS || 10 });
  if (missing && (error.status === 403 || error.status === 404)) return t(missing);
  return translationOf("ERRORS", error.code, [error.message, ...error.hints].filter(Boolean).join(" ")) || t("error.unknown");
}

/** Runs an action and shows its error, if any. Returns whether it succeeded. */
export async function attempt(act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    notify(wordsOf(error), true);
    return false;
  }
}
