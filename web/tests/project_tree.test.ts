// The tree of projects: by parts of names, with the documents of everything below.
import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { treeOf } from "../src/model/project_tree";

const count = (value: string, count: number) => ({ value, count });

test("projects stand below the one whose name theirs begins with", () => {
  const [pumps, valves] = treeOf([count("valves", 1), count("pumps/heron", 2), count("pumps", 3), count("pumps/kestrel/old", 4)]);
  deepEqual([pumps!.name, pumps!.count, valves!.name, valves!.count], ["pumps", 9, "valves", 1]);
  deepEqual([...pumps!.ids].sort(), ["pumps", "pumps/heron", "pumps/kestrel/old"]);
  deepEqual(pumps!.below.map(({ name, count }) => [name, count]), [["heron", 2], ["kestrel", 4]]);
  deepEqual(pumps!.below[1]!.below.map(({ name, ids }) => [name, ids]), [["old", ["pumps/kestrel/old"]]]);
});

test("names with empty parts have an end", () => {
  deepEqual(treeOf([count("a//b", 1), count("/", 2)]).map(({ name, count }) => [name, count]), [["", 2], ["a", 1]]);
});
