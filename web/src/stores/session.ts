// The signed-in user, the site's features, and the appearance. Only preferences are stored in this browser, no
// document content.
import { effect, signal } from "@preact/signals";
import { read } from "../api/request";
import type { Me, SiteView } from "../api/types";
import { language, load, type Language } from "../words/words";

export const me = signal<Me | null>(null);
export const site = signal<SiteView>({ max_question_chars: 8000, max_document_bytes: 1e8, max_request_bytes: 4e6, suffixes: [], web_import: false, stand_in: false, sharing: false });

export type Theme = "auto" | "light" | "dark";
const THEME = "groundwork.theme";
const LANGUAGE = "groundwork.language";
const THEMES: readonly string[] = ["auto", "light", "dark"];

export const theme = signal<Theme>(THEMES.includes(localStorage.getItem(THEME) ?? "") ? (localStorage.getItem(THEME) as Theme) : "auto");

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem(THEME, theme.value);
});
effect(() => {
  document.documentElement.lang = language.value;
});

export async function speak(wanted: Language): Promise<void> {
  localStorage.setItem(LANGUAGE, wanted);
  await load(wanted);
}

export async function loadLanguage(): Promise<void> {
  const kept = localStorage.getItem(LANGUAGE) ?? navigator.language.slice(0, 2);
  await load(kept === "de" ? "de" : "en");
}

export async function begin(): Promise<void> {
  const [who, what] = await Promise.all([read<Me>("/api/me"), read<SiteView>("/api/site")]);
  me.value = who;
  site.value = what;
}
