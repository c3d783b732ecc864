// What the API says in codes, in the page's language. Its own words are English.
import type { Codes } from "./words";
import { codes, language } from "./words";

/** The words for a code in the page's language if there are any; else `english`. */
export function said(table: keyof Codes, code: string, english: string): string {
  const known: Record<string, string> = codes()?.[table] ?? {};
  return Object.hasOwn(known, code) ? known[code]! : english;
}

/** Whether the API's own words, which are English, need to be marked as such for screen readers. */
export function inEnglish(): { lang?: string } {
  return language.value === "en" ? {} : { lang: "en" };
}
