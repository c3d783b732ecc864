// The documents that the caller may see: a page of the list, what can be filtered by, and how far each is, live.
import { computed, signal } from "@preact/signals";
import { read } from "../api/request";
import { follow } from "../api/stream";
import type { DocumentFacets, DocumentList, DocumentView } from "../api/types";

export const FACETS = ["document_type", "department", "project_id", "language", "tags"] as const;
export type Facet = (typeof FACETS)[number];

export const documents = signal<readonly DocumentView[]>([]);
export const facets = signal<DocumentFacets | null>(null);
/** What is chosen: one value of a category, several tags. */
export const filters = signal<Readonly<Partial<Record<Facet, readonly string[]>>>>({});
export const documentSearch = signal("");
export const onlyStatus = signal<"" | "working" | "failed">("");
export const isListed = signal(false);
const cursor = signal<string | null>(null);
export const hasMoreDocuments = computed(() => cursor.value !== null);

/** Those of the status that is asked for: a document that is listed may have changed since. */
export const shownDocuments = computed(() =>
  documents.value.filter((document) => !onlyStatus.value || phaseOf(document) === onlyStatus.value),
);

export function phaseOf(document: { status: string }): "ready" | "failed" | "working" {
  return document.status === "ready" || document.status === "failed" ? document.status : "working";
}

function query(more: Record<string, string>): string {
  // A document in work has no metadata yet: its status is asked for without any.
  const chosen = more["status"] ? [] : Object.entries(filters.value).flatMap(([facet, values]) => values.map((value) => [facet, value]));
  return new URLSearchParams([...chosen, ...Object.entries(more)].filter(([, value]) => value)).toString();
}

function listQuery(): string {
  return query({ q: documentSearch.value.trim(), status: onlyStatus.value });
}

let asked = 0; // readings of the list, by number
let shown = 0;

export async function loadDocuments(): Promise<void> {
  const reading = (asked += 1);
  const wanted = listQuery();
  const [list, counts] = await Promise.all([
    read<DocumentList>(`/api/documents?${wanted}`),
    read<DocumentFacets>(`/api/documents/facets?${query({})}`),
  ]);
  if (wanted !== listQuery() || reading < shown) return; // a later one was quicker
  shown = reading;
  documents.value = list.documents;
  cursor.value = list.cursor;
  facets.value = counts;
  isListed.value = true;
}

export async function loadMoreDocuments(): Promise<void> {
  if (cursor.value === null) return;
  const list = await read<DocumentList>(`/api/documents?${query({ status: onlyStatus.value, cursor: cursor.value })}`);
  const known = new Set(documents.value.map((document) => document.doc_id));
  documents.value = [...documents.value, ...list.documents.filter((document) => !known.has(document.doc_id))];
  cursor.value = list.cursor;
}

export function toggleFilter(facet: Facet, value: string): void {
  const before = filters.value[facet] ?? [];
  const others = facet === "tags" ? before.filter((one) => one !== value) : [];
  filters.value = { ...filters.value, [facet]: before.includes(value) ? others : [...others, value] };
}

const RELOAD_MS = 400;
let reload = 0;

/** Follows all documents until `signal` ends it. */
export async function watchDocuments(signal: AbortSignal): Promise<void> {
  await follow({
    path: "/api/documents/events",
    after: 0,
    gapless: false,
    signal,
    onFrame: (frame) => {
      const told = frame.data as DocumentView;
      if (frame.event === "removed") forget(told.doc_id);
      else if (frame.event === "document") update(told);
    },
  });
}

export function forget(docId: string): void {
  shown = asked += 1; // a list that is being read may still hold it
  reloadSoon();
  documents.value = documents.value.filter((document) => document.doc_id !== docId);
}

function update(told: DocumentView): void {
  const before = documents.value.find((document) => document.doc_id === told.doc_id);
  if (before) documents.value = documents.value.map((one) => (one === before ? { ...one, ...present(told) } : one));
  else if (told.status !== "ready") documents.value = [told, ...documents.value];
  // The list tells more of a document that is ready than the event does.
  if (told.status === "ready" || !before) reloadSoon();
}

function reloadSoon(): void {
  clearTimeout(reload);
  reload = window.setTimeout(() => void loadDocuments().catch(() => {}), RELOAD_MS);
}

/** An event leaves out what it does not know: that must not hide what the list knows. */
function present(told: DocumentView): Partial<DocumentView> {
  const always = ["status", "status_reason", "hint", "failure", "warnings"];
  return Object.fromEntries(Object.entries(told).filter(([name, value]) => always.includes(name) || (value !== null && String(value) !== "")));
}
