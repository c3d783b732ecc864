// Example questions for an empty thread, based on the newest documents that the user can read.
import { signal } from "@preact/signals";
import { read } from "../api/request";
import type { DocumentFacets, DocumentList } from "../api/types";
import { examplesFor } from "../model/example_questions";
import { language, t } from "../words/words";
import { site } from "./session";

export const suggestions = signal<readonly string[]>([]);
/** Number of readable documents; null = not loaded yet. */
export const documentCount = signal<number | null>(null);
const SAMPLE = 20; // number of newest documents used for examples

export async function loadSuggestions(): Promise<void> {
  const [list, facets] = await Promise.all([
    read<DocumentList>(`/api/documents?limit=${SAMPLE}&status=ready`),
    read<DocumentFacets>("/api/documents/facets"),
  ]);
  documentCount.value = facets.document_count;
  const examples = examplesFor(list.documents, language.value, !site.value.stand_in);
  suggestions.value = examples.map((one) => ("text" in one ? one.text : t(one.key, one.values)));
}
