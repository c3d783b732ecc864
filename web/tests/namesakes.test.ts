// Documents of the same name get labels that tell them apart, as short as possible.
import assert from "node:assert/strict";
import { test } from "node:test";
import { labelsOf } from "../src/model/namesakes";

const labelled = (...documents: [name: string, folder: string | null, ...others: string[]][]) => {
  const labels = labelsOf(documents.map(([name, folder, ...others], index) => ({ id: String(index), name, folder, others })));
  return documents.map((_, index) => labels.get(String(index)) ?? "");
};

test("names that occur once get no label", () => {
  assert.deepEqual(labelled(["a.pdf", "x"], ["b.pdf", "x"]), ["", ""]);
});

test("a folder is shortened to the parts that differ", () => {
  assert.deepEqual(labelled(["a.pdf", "2023/hr"], ["a.pdf", "2024/sales"], ["b.pdf", "2024/sales"]), ["hr", "sales", ""]);
  assert.deepEqual(labelled(["a.pdf", "all/2023/hr"], ["a.pdf", "all/2024/hr"]), ["2023/hr", "2024/hr"]);
  assert.deepEqual(labelled(["a.pdf", "hr"], ["a.pdf", "2024/hr"]), ["hr", "2024/hr"]);
});

test("without a folder, the first other text that differs is shown", () => {
  assert.deepEqual(labelled(["a.pdf", "hr", "Anna"], ["a.pdf", null, "Ben"], ["a.pdf", null, "Clara"]), ["hr", "Ben", "Clara"]);
  assert.deepEqual(labelled(["a.pdf", null, "Ben", "1 May"], ["a.pdf", null, "Ben", "2 May"]), ["1 May", "2 May"]);
  assert.deepEqual(labelled(["a.pdf", "hr", "Ben", "1 May"], ["a.pdf", "hr", "Ben", "2 May"]), ["1 May", "2 May"]);
});

test("labels differ whatever the folders are", () => {
  const parts = ["a", "b", "a/b", "b/b", "a/b/b", "no folder"];
  for (const one of parts)
    for (const other of parts)
      for (const third of parts)
        if (new Set([one, other, third]).size === 3) assert.equal(new Set(labelled(["x", one], ["x", other], ["x", third])).size, 3, `${one} ${other} ${third}`);
});

test("a document that is mentioned twice is no namesake of its own", () => {
  const one = { id: "1", name: "a.pdf", folder: "x", others: [] };
  assert.equal(labelsOf([one, { ...one }]).size, 0);
});
