// The user's readable documents: one page of the list, the filters, and their live status.
import { computed, effect, signal } from "@preact/signals";
import { read } from "../api/request";
import { follow } from "../api/stream";
import type { DocumentFacets, DocumentList, DocumentView } from "../api/types";
import { route } from "../routes";

export const FACETS = ["document_type", "department", "project_id", "language", "tags"] as const;
export type Facet = (typeof FACETS)[number];

export const documents = signal<readonly DocumentView[]>([]);
export const facets = signal<DocumentFacets | null>(null);
/** Documents per project, counted with all other filters applied. */
export const projects = signal<DocumentFacets["project_id"]>([]);
/** Active filters: one value per category, several tags. */
export const filters = signal<Readonly<Partial<Record<Facet, readonly string[]>>>>({});
export const documentSearch = signal("");
/** Whether a document may match any word of the search instead of all. */
export const matchesAny = signal(false);
export const onlyStatus = signal<"" | "working" | "failed">("");
export const SORTS = ["title", "document_type", "upload_date"] as const;
export type Sort = (typeof SORTS)[number];
/** Empty = documents in progress first, then the newest. */
export const sort = signal<"" | Sort>("");
/** Ids of the selected documents. */
export const selected = signal<ReadonlySet<string>>(new Set());
export const isListed = signal(false);
/** The latest event for each document, by id, including documents outside the list. */
export const latest = signal<Readonly<Record<string, DocumentView>>>({});
const cursor = signal<string | null>(null);
export const hasMoreDocuments = computed(() => cursor.value !== null);

/** The listed documents that still match the status filter; events may have changed their status. */
export const shownDocuments = computed(() =>
  documents.value.filter((document) => !onlyStatus.value || phaseOf(document) === onlyStatus.value),
);

export function phaseOf(document: { status: string }): "ready" | "failed" | "working" {
  return document.status === "ready" || document.status === "failed" ? document.status : "working";
}

/** Whether the document has no searchable content: no page was readable, or it has no text. */
export function isUnsearchable(document: DocumentView): boolean {
  const unreadable = document.unreadable_pages ?? 0;
  return phaseOf(document) === "ready" && (document.has_text === false || (unreadable > 0 && unreadable === document.page_count));
}

function query(more: Record<string, string>, without: Facet | "" = ""): string {
  // Metadata filters are dropped with a status filter: a document in progress has no metadata yet.
  const kept = more["status"] ? [] : Object.entries(filters.value).filter(([facet]) => facet !== without);
  const chosen = kept.flatMap(([facet, values]) => values.map((value) => [facet, value]));
  return new URLSearchParams([...chosen, ...Object.entries(more)].filter(([, value]) => value)).toString();
}

function wordsQuery(): Record<string, string> {
  const q = documentSearch.value.trim();
  return { q, match: q && (matchesAny.value ? "any" : "all") };
}

const listParts = () => ({ ...wordsQuery(), status: onlyStatus.value, sort: sort.value });

const listQuery = () => query(listParts());

// A change of the list clears the selection, so that no action affects documents that were filtered out.
const listed = computed(() => JSON.stringify([filters.value, wordsQuery(), onlyStatus.value]));
effect(() => {
  if (listed.value) selected.value = new Set();
});

/** Encodes search, filters and order for the URL's fragment, which browsers do not send to the server. */
function fragmentOf(): string {
  const chosen = Object.entries(filters.value).flatMap(([facet, values]) => values.map((value) => [facet, value]));
  const parts = new URLSearchParams([["q", documentSearch.value], ["match", matchesAny.value ? "any" : ""], ["status", onlyStatus.value], ["sort", sort.value], ...chosen].filter(([, value]) => value));
  return String(parts) && `#${parts}`;
}

function readFragment(): void {
  const parts = new URLSearchParams(location.hash.slice(1));
  const one = <T extends string>(name: string, known: readonly T[]) => known.find((value) => value === parts.get(name)) ?? "";
  documentSearch.value = parts.get("q") ?? "";
  matchesAny.value = parts.get("match") === "any";
  onlyStatus.value = one("status", ["working", "failed"]);
  sort.value = one("sort", SORTS);
  filters.value = Object.fromEntries(FACETS.flatMap((facet) => (parts.has(facet) ? [[facet, parts.getAll(facet)]] : [])));
}

if (route.value.view === "documents") readFragment();
window.addEventListener("popstate", () => route.value.view === "documents" && readFragment());
effect(() => {
  const fragment = fragmentOf();
  if (route.value.view === "documents" && location.hash !== fragment) history.replaceState(null, "", location.pathname + location.search + fragment);
});

// The server reads the row of each document, so a list that fills the screen arrives before a whole page of it.
const SCREEN = 25;
const PAGE = 100;

let asked = 0; // number of the latest request
let shown = 0;
let shownQuery: string | null = null;

/** Loads the list, then the categories. A new list appears in two parts; a list on display is replaced at once. */
export async function loadDocuments(): Promise<void> {
  const reading = (asked += 1);
  const wanted = listQuery();
  const words = wordsQuery();
  const isOutdated = () => wanted !== listQuery() || reading < shown; // a later request finished first
  const load = async (limit: number): Promise<string | null> => {
    const page = await read<DocumentList>(`/api/documents?${query({ ...listParts(), limit: String(limit) })}`);
    if (isOutdated()) return null;
    const rest = limit === PAGE ? null : page.cursor; // the rest of a screen follows without a click
    shown = reading;
    shownQuery = wanted;
    documents.value = page.documents;
    cursor.value = rest === null ? page.cursor : null;
    isListed.value = true;
    return rest;
  };
  const rest = await load(wanted === shownQuery ? PAGE : SCREEN);
  if (isOutdated()) return;
  const counting = Promise.all([
    read<DocumentFacets>(`/api/documents/facets?${query(words)}`),
    filters.value.project_id ? read<DocumentFacets>(`/api/documents/facets?${query(words, "project_id")}`) : null,
  ]).then(([counts, all]) => {
    if (isOutdated()) return;
    facets.value = counts;
    projects.value = (all ?? counts).project_id;
  });
  const loadRest = async () => {
    try {
      await load(PAGE);
    } catch (error) {
      if (!isOutdated()) cursor.value = rest; // so that a click can load it
      throw error;
    }
  };
  await Promise.all([rest !== null && loadRest(), counting]);
}

export async function loadMoreDocuments(): Promise<void> {
  if (cursor.value === null) return;
  const list = await read<DocumentList>(`/api/documents?${query({ status: onlyStatus.value, sort: sort.value, cursor: cursor.value })}`);
  const known = new Set(documents.value.map((document) => document.doc_id));
  documents.value = [...documents.value, ...list.documents.filter((document) => !known.has(document.doc_id))];
  cursor.value = list.cursor;
}

export function toggleFilter(facet: Facet, value: string): void {
  const before = filters.value[facet] ?? [];
  const others = facet === "tags" ? before.filter((one) => one !== value) : [];
  filters.value = { ...filters.value, [facet]: before.includes(value) ? others : [...others, value] };
}

/** Filters the list by these projects; an empty list shows all. */
export function showProjects(names: readonly string[]): void {
  const { project_id: _, ...others } = filters.value;
  filters.value = names.length ? { ...others, project_id: names } : others;
}

const RELOAD_MS = 400;
let reload = 0;

/** Follows all documents until `signal` aborts. */
export async function watchDocuments(signal: AbortSignal): Promise<void> {
  await follow({
    path: "/api/documents/events",
    after: 0,
    gapless: false,
    signal,
    onFrame: (frame) => {
      const changed = frame.data as DocumentView;
      if (frame.event === "removed") forget(changed.doc_id);
      else if (frame.event === "document") update(changed);
    },
  });
}

export function forget(docId: string): void {
  shown = asked += 1; // responses in flight may still contain it
  reloadSoon();
  documents.value = documents.value.filter((document) => document.doc_id !== docId);
  selected.value = new Set([...selected.value].filter((one) => one !== docId));
}

export function update(changed: DocumentView): void {
  // Events lack details that responses contain, such as the access list.
  const known = { ...latest.value[changed.doc_id], ...present(changed) } as DocumentView;
  latest.value = { ...latest.value, [changed.doc_id]: known };
  const before = documents.value.find((document) => document.doc_id === changed.doc_id);
  if (before) documents.value = documents.value.map((one) => (one === before ? { ...one, ...present(changed) } : one));
  else if (changed.status !== "ready") documents.value = [changed, ...documents.value];
  // The list contains more details of a ready document than the event.
  if (changed.status === "ready" || !before) reloadSoon();
}

function reloadSoon(): void {
  clearTimeout(reload);
  reload = window.setTimeout(() => void loadDocuments().catch(() => {}), RELOAD_MS);
}

/** Returns the fields that the event knows, so that empty ones do not overwrite the list's values. */
function present(changed: DocumentView): Partial<DocumentView> {
  const always = ["status", "status_reason", "hint", "failure", "warnings"];
  const isKept = ([name, value]: [string, unknown]) => always.includes(name) || (value !== null && String(value) !== "");
  return Object.fromEntries(Object.entries(changed).filter(isKept));
}
