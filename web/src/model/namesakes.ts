// Labels that distinguish documents with the same name. Pure.

export interface Named {
  id: string;
  name: string;
  /** The folder as a path; null = unknown. */
  folder: string | null;
  /** Other texts that may distinguish the document, best first. */
  others: readonly string[];
}

/** Returns a label for each document whose name occurs more than once: its folder, shortened to the last parts
 *  that differ, or another text. */
export function labelsOf(documents: Iterable<Named>): ReadonlyMap<string, string> {
  const byId = new Map([...documents].map((one) => [one.id, one]));
  const byName = new Map<string, Named[]>();
  for (const one of byId.values()) byName.set(one.name, [...(byName.get(one.name) ?? []), one]);
  const repeated = [...byName.values()].filter((namesakes) => namesakes.length > 1);
  return new Map(repeated.flatMap((namesakes) => namesakes.map((one) => [one.id, labelOf(one, namesakes)])));
}

function labelOf(one: Named, namesakes: readonly Named[]): string {
  const others = namesakes.filter((other) => other !== one);
  const folder = one.folder === null ? null : shortest(one.folder, others.flatMap((other) => other.folder ?? []));
  if (folder !== null) return folder;
  const distinct = one.others.findIndex((text, index) => text !== "" && others.every((other) => other.others[index] !== text));
  if (distinct >= 0) return one.others[distinct]!;
  return [one.folder, ...one.others].filter(Boolean).join(", ") || one.id.slice(0, 6);
}

/** Returns the shortest end of a path that no other path has; null if another path is the same. */
function shortest(path: string, others: readonly string[]): string | null {
  if (others.includes(path)) return null;
  const parts = path.split("/");
  const endOf = (all: readonly string[], count: number) => all.slice(-count).join("/");
  for (let count = 1; count < parts.length; count += 1) {
    const end = endOf(parts, count);
    if (others.every((other) => endOf(other.split("/"), count) !== end)) return end;
  }
  return path;
}
