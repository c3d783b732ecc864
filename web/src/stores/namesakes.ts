// Labels documents with the same name wherever several are shown.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { CallError, read } from "../api/request";
import type { DocumentDetail, DocumentView } from "../api/types";
import { labelsOf, type Named } from "../model/namesakes";
import { day, t } from "../words/words";

/** Returns a label by id for the documents whose file name occurs more than once among them. */
export function labelsOfListed(documents: readonly DocumentView[]): ReadonlyMap<string, string> {
  return labelsOf(documents.map(namedOf));
}

function namedOf({ doc_id, filename, folder, source_url, project_id, published_by, upload_date }: DocumentView): Named {
  return {
    id: doc_id,
    name: filename,
    folder: folder === "" ? t("folder.none") : (folder ?? folderOfUrl(source_url ?? "", filename)),
    others: [published_by ?? "", project_id ?? "", upload_date ? day(upload_date) : ""],
  };
}

/** Returns the folder in a URL whose last part is the file, for example of a SharePoint file. */
function folderOfUrl(url: string, filename: string): string | null {
  try {
    const parts = new URL(url).pathname.split("/").slice(1).map(decodeURIComponent);
    return parts.pop() === filename ? parts.join("/") : null;
  } catch {
    return null; // not a URL, or encoded incorrectly
  }
}

interface Mentioned {
  doc_id: string;
  filename: string;
}

/** Documents by id that were loaded because their names repeat; null = not readable. */
const loaded = signal<Readonly<Record<string, DocumentView | null>>>({});

/** Returns labels as `labelsOfListed`, for documents of which only the name is known. Their details are loaded
 *  only if names repeat. */
export function useLabels(mentioned: readonly Mentioned[]): ReadonlyMap<string, string> {
  const repeated = namesakesIn(mentioned);
  useEffect(() => {
    for (const id of repeated) if (!(id in loaded.value)) void load(id);
  }, [repeated.join()]);
  return loadedLabels(mentioned);
}

/** Returns the labels of `useLabels` that have been loaded, for use outside components. */
export function loadedLabels(mentioned: readonly Mentioned[]): ReadonlyMap<string, string> {
  return labelsOfListed(namesakesIn(mentioned).flatMap((id) => loaded.value[id] ?? []));
}

/** Returns the ids of the documents whose names repeat. */
function namesakesIn(mentioned: readonly Mentioned[]): string[] {
  const names = new Map(mentioned.filter(({ doc_id }) => doc_id).map(({ doc_id, filename }) => [doc_id, filename]));
  return [...Map.groupBy(names.keys(), (id) => names.get(id)).values()].filter((ids) => ids.length > 1).flat();
}

async function load(id: string): Promise<void> {
  loaded.value = { ...loaded.value, [id]: null };
  try {
    const detail = await read<DocumentDetail>(`/api/documents/${id}`);
    loaded.value = { ...loaded.value, [id]: detail };
  } catch (error) {
    if (error instanceof CallError && error.status === 404) return;
    const { [id]: _, ...others } = loaded.value; // loaded again when it is shown again
    loaded.value = others;
  }
}
