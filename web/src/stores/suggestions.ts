// Example questions for an empty thread, made from titles and tags of the user's readable documents.
import { signal } from "@preact/signals";
import { read } from "../api/request";
import type { DocumentFacets, DocumentList, DocumentView } from "../api/types";
import { t } from "../words/words";

export const suggestions = signal<readonly string[]>([]);
/** Number of readable documents; null = not loaded yet. */
export const documentCount = signal<number | null>(null);
const SAMPLE = 50; // newest documents from which examples are made
const MOST = 4;

export async function loadSuggestions(): Promise<void> {
  const [list, facets] = await Promise.all([
    read<DocumentList>(`/api/documents?limit=${SAMPLE}&status=ready`),
    read<DocumentFacets>("/api/documents/facets"),
  ]);
  documentCount.value = facets.document_count;
  suggestions.value = questionsAbout(list.documents);
}

const nameOf = (document: DocumentView) => document.title || document.filename;

/** Returns at most four questions of different kinds, each about another document. */
export function questionsAbout(documents: readonly DocumentView[]): string[] {
  const byName = Map.groupBy(documents, (document) => nameOf(document).replace(/\d+/g, "#").toLowerCase());
  const pair = [...byName.values()].find((alike) => alike.length > 1);
  const single = [...byName.values()].flatMap((alike) => (alike.length === 1 ? alike : []));
  const questions: string[] = [];
  if (pair) questions.push(t("suggest.compare", { first: pair[0]!.filename, second: pair[1]!.filename }));
  const [topic, summary, ...others] = onePerKind(single);
  if (topic) questions.push(about(topic));
  if (summary) questions.push(t("suggest.summary", { title: nameOf(summary) }));
  for (const other of others) questions.push(about(other));
  return questions.slice(0, MOST);
}

/** Moves documents of a type that already occurred to the end, so that different kinds come first. */
function onePerKind(documents: readonly DocumentView[]): DocumentView[] {
  const seen = new Set<string>();
  const isNew = ({ document_type }: DocumentView) => seen.size !== seen.add(document_type ?? "").size;
  const { first = [], rest = [] } = Object.groupBy(documents, (document) => (isNew(document) ? "first" : "rest"));
  return [...first, ...rest];
}

/** Returns a question about a tag that the title does not contain. */
function about(document: DocumentView): string {
  const title = nameOf(document);
  const tag = document.tags.find((one) => !title.toLowerCase().includes(one.toLowerCase()));
  return tag ? t("suggest.topic", { title, tag }) : t("suggest.summary", { title });
}
