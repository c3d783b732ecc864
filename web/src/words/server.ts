// Translates API codes into the page's language. The API's own texts are English.
import type { Codes } from "./words";
import { codes, language } from "./words";

/** Returns the translation of a code, or `english` if there is none. */
export function translationOf(table: keyof Codes, code: string, english: string): string {
  const known: Record<string, string> = codes()?.[table] ?? {};
  return Object.hasOwn(known, code) ? known[code]! : english;
}

/** Returns the name of a document type, which the API gives as an English noun such as `price_list`. */
export function typeName(type: string): string {
  return translationOf("TYPES", type.replaceAll(" ", "_"), type.replaceAll("_", " "));
}

/** Marks the API's English texts for screen readers if the page is in another language. */
export function inEnglish(): { lang?: string } {
  return language.value === "en" ? {} : { lang: "en" };
}
