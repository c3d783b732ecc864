// Projects as a tree: `pumps/heron` is a child of `pumps`. Pure.

export interface Branch {
  name: string;
  /** Ids of this project and its descendants, as the API names them. */
  ids: readonly string[];
  count: number;
  below: readonly Branch[];
}

/** Returns the tree of projects by the parts of their names, in alphabetical order. */
export function treeOf(found: readonly { value: string; count: number }[], depth = 0): Branch[] {
  const groups = new Map<string, { value: string; count: number }[]>();
  for (const one of found) {
    const name = one.value.split("/")[depth]!;
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  const branches = [...groups].map(([name, inside]): Branch => {
    const deeper = inside.filter(({ value }) => value.split("/").length > depth + 1);
    return {
      name,
      ids: inside.map(({ value }) => value),
      count: inside.reduce((sum, { count }) => sum + count, 0),
      below: treeOf(deeper, depth + 1),
    };
  });
  return branches.sort((a, b) => a.name.localeCompare(b.name));
}
