// The current route in the URL, so that links, reloads and signing in again restore it. URLs contain only ids,
// never text of a document or a question, because platforms log URLs.
import { signal } from "@preact/signals";

export type View = "chat" | "documents" | "account" | "admin" | "shared";

export interface Route {
  view: View;
  thread: string;
  /** The citation whose source is open: number `cite` in the answer of `run`. */
  run: string;
  cite: number;
  /** The open document, next to a conversation at page `page`. */
  doc: string;
  page: number;
  /** The id of the open share. */
  share: string;
}

const NOWHERE: Route = { view: "chat", thread: "", run: "", cite: 0, doc: "", page: 0, share: "" };
const VIEWS: readonly string[] = ["chat", "documents", "account", "admin", "shared"];

function here(): Route {
  const query = new URLSearchParams(location.search);
  const view = query.get("view") ?? "chat";
  return {
    view: VIEWS.includes(view) ? (view as View) : "chat",
    thread: query.get("thread") ?? "",
    run: query.get("run") ?? "",
    cite: Number(query.get("cite")) || 0,
    doc: query.get("doc") ?? "",
    page: Number(query.get("page")) || 0,
    share: query.get("share") ?? "",
  };
}

export const route = signal<Route>(here());
window.addEventListener("popstate", () => (route.value = here()));

export function addressOf(next: Partial<Route>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(next)) if (value && value !== NOWHERE[name as keyof Route]) query.set(name, String(value));
  const text = query.toString();
  return text ? `${location.pathname}?${text}` : location.pathname;
}

/** Navigates to a new route. Omitted parts are reset. */
export function go(next: Partial<Route>): void {
  show({ ...NOWHERE, ...next }, "pushState");
}

/** Changes parts of the route. `replaceState` adds no history entry. */
export function turn(next: Partial<Route>, how: "pushState" | "replaceState" = "pushState"): void {
  show({ ...route.value, ...next }, how);
}

function show(next: Route, how: "pushState" | "replaceState"): void {
  if (addressOf(next) !== location.pathname + location.search) history[how](null, "", addressOf(next));
  route.value = next;
}
