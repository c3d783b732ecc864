// The page's texts. Each language is a file that is loaded when chosen. The type checker ensures that German has
// the same keys as English.
import { signal } from "@preact/signals";
import type { CODES } from "./de_codes";
import type { Words } from "./en";

export type Language = "en" | "de";
export type Key = keyof Words;
export const language = signal<Language>("en");
export type Codes = typeof CODES;
type Loaded = { words: Words; codes: Codes | null };
const FILES: Record<Language, () => Promise<Loaded>> = { en: () => import("./en"), de: () => import("./de") };
const loaded = signal<Loaded | null>(null);

/** Loads a language, then switches to it. */
export async function load(wanted: Language): Promise<void> {
  loaded.value = await FILES[wanted]();
  language.value = wanted;
}

export const codes = () => loaded.value?.codes;

/** Returns the text of `key`, with `{name}` replaced. `one|many` chooses by `count`. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const [one, many] = (loaded.value?.words[key] ?? key).split("|") as [string, string?];
  const text = many !== undefined && values.count !== 1 ? many : one;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    return typeof value === "number" ? value.toLocaleString(language.value) : (value ?? whole);
  });
}

/** Returns the text of a key that contains a part from the API, or `fallback` if there is no such key. */
export function tOf(prefix: string, name: string, fallback = name, values?: Record<string, string | number>): string {
  const key = `${prefix}.${name}`;
  return loaded.value && key in loaded.value.words ? t(key as Key, values) : fallback;
}

/** Returns the browser's regional variant of the language, such as en-GB, which decides the date format. */
function locale(): string {
  return navigator.languages.find((one) => one.startsWith(language.value)) ?? language.value;
}

export function dateTime(iso: string): string {
  return new Date(iso).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" });
}

export function day(iso: string): string {
  // A bare date would be parsed as midnight UTC, which is the day before in America.
  return new Date(iso.length === 10 ? `${iso}T00:00` : iso).toLocaleDateString(locale(), { dateStyle: "medium" });
}

const UNDETERMINED = "und"; // ISO 639-3; browsers call it "root"

/** Returns a language's name by code. */
export function languageName(code: string): string {
  if (code === UNDETERMINED) return t("language.unknown");
  const names = new Intl.DisplayNames(language.value, { type: "language" });
  return (/^[a-z]{2,3}$/.test(code) && names.of(code)) || code;
}

export function bytes(size: number): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(size, 1)) / 3));
  const format = { style: "unit", unit: units[power], unitDisplay: power > 0 ? "short" : "long", maximumFractionDigits: power > 1 ? 1 : 0 } as const;
  return (size / 1000 ** power).toLocaleString(language.value, format);
}

/** Formats a moment of a recording as 1:02:03. */
export function moment(seconds: number): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  const shown = parts[0] ? parts : parts.slice(1);
  return shown.map((part, index) => (index ? String(part).padStart(2, "0") : String(part))).join(":");
}
