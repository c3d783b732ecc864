// Markdown that grows: block by block it is what the whole text is; and places that point to sources.
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { createParser } from "eventsource-parser";
import { Lexer } from "marked";
import { lexBlocks, NO_BLOCKS } from "../src/text/blocks";
import { docIdOf, pieces, places } from "../src/text/citations";
import { excerptOf } from "../src/text/excerpt";
import { plainText } from "../src/text/plain_text";
import { framesOf } from "../src/api/stream";
import { bytes, languageName, load } from "../src/words/words";

const TEXTS = [
  "# Title\n\nA paragraph of *words*.\n\n- one\n- two\n  - three\n\n1. a\n2. b\n\nEnd.",
  "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n\n```js\nlet x = 1;\n\nlet y = 2;\n```\n\n> quoted\n> still\n\nafter",
  "Line\r\nbreak\r\n\r\n***\n\n<b onclick=alert(1)>x</b>\n\n![f](/api/documents/d/figures/f.png) (Source: a.pdf, S. 2)[1]\n\n* * *\n\n    code\n\nlast",
  "Setext\n===\n\n* a\n\n* b\n\n  c\n\n+ d\n\n~~~\nopen fence",
];

/** Fragments that combine into every construct of the syntax, regular and broken. */
const FRAGMENTS = [
  "*", "**", "_", "__", "~", "~~", "`", "``", "[", "]", "(", ")", "!", "<a>", "</a>", "<b", "\n", "\n\n", "> ", "- ", "1. ", "# ", "    ", "\t", "|", "---",
  "===", "a", " b ", "http://x.y", "www.a.b", "a@b.cd", "\\", "&amp;", "  \n", '"', "é", "<!--", "-->", "```", "[x]: http://a", "- [ ] ", "| a |\n| - |\n",
];

test("the lexer without its unused parts is the whole lexer", async () => {
  const { Lexer: WholeLexer } = await import(resolve("node_modules/marked/lib/marked.esm.js")); // not bundled, so unchanged
  let seed = 1;
  const next = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
  const random = Array.from({ length: 5000 }, () => Array.from({ length: 3 + next(14) }, () => FRAGMENTS[next(FRAGMENTS.length)]).join(""));
  for (const text of [...TEXTS, ...random]) assert.equal(JSON.stringify(Lexer.lex(text)), JSON.stringify(WholeLexer.lex(text)), text);
});

test("a text that grows character by character is lexed as the whole", () => {
  for (const text of TEXTS) {
    let blocks = NO_BLOCKS;
    for (let end = 1; end <= text.length; end += 1) {
      blocks = lexBlocks(blocks, text.slice(0, end));
      const expected = Lexer.lex(text.slice(0, end).replace(/\r\n?/g, "\n")).filter((token) => token.type !== "space");
      const found = [...blocks.settled, ...blocks.tail].filter((token) => token.type !== "space");
      assert.deepEqual(found.map((token) => [token.type, token.raw.trim()]), expected.map((token) => [token.type, token.raw.trim()]));
    }
  }
});

test("a text that does not continue the one before starts over", () => {
  const before = lexBlocks(NO_BLOCKS, "a\n\nb\n\nc\n\nd");
  const after = lexBlocks(before, "other");
  assert.equal(after.settled.length, 0);
  assert.equal(after.tail[0]?.raw, "other");
});

test("places that point to sources become numbers, and nothing else does", () => {
  const known = new Set([1, 12]);
  assert.deepEqual(pieces("It is. (Source: a b(1).pdf, S. 3)[1] So.", known), [{ text: "It is. " }, { n: 1 }, { text: " So." }]);
  const moment = `(Source: talk (1).vtt, [01:10](/api/documents/d/readable?run=${"r".repeat(90)}&n=1&t=70#cited))[1]`;
  assert.deepEqual(pieces(`Brass. ${moment}`, known), [{ text: "Brass. " }, { n: 1 }]);
  assert.deepEqual(pieces("[1][12]", known), [{ n: 1 }, { n: 12 }]);
  assert.deepEqual(pieces("(Source: a.pdf, S. 3)[7] [x]", known), [{ text: "(Source: a.pdf, S. 3)[7] [x]" }]);
});

test("a place without a number is found with its file and page", () => {
  assert.deepEqual(places("(Source: a b.pdf, S. 3) and (Source: c.md)"), [{ file: "a b.pdf", page: 3 }, { text: " and " }, { file: "c.md", page: null }]);
  assert.deepEqual(places("(Source: a (1).pdf, S. 3)"), [{ file: "a (1).pdf", page: 3 }]);
  assert.deepEqual(places("(Sources: a.pdf, S. 3)"), [{ text: "(Sources: a.pdf, S. 3)" }]);
});

test("a long line of brackets costs no time", () => {
  const started = performance.now();
  pieces("(Source: (".repeat(20_000), new Set([1]));
  for (const start of ["(Source: ", "(Source: (a)"]) places(start.repeat(20_000));
  assert.ok(performance.now() - started < 2000);
});

test("events are read wherever the bytes are cut", async () => {
  const text = 'id: 1\nevent: token\ndata: {"text":"Grüße 🙂"}\n\n: comment\n\nid: 2\r\nevent: complete\r\ndata: {"a":1}\r\n\r\n';
  const bytes = new TextEncoder().encode(text);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of [bytes.slice(0, cut), bytes.slice(cut)]) if (part.length) controller.enqueue(part);
        controller.close();
      },
    });
    const frames = [];
    for await (const frame of framesOf(body)) frames.push(frame);
    assert.deepEqual(frames, [
      { id: 1, event: "token", data: { text: "Grüße 🙂" } },
      { id: 2, event: "complete", data: { a: 1 } },
    ]);
  }
});

test("events are read as by another parser", async () => {
  const text = "data: 0\n\nid:7\nevent:a\ndata:[1,\ndata:  2]\r\n\r\nretry: 5\n:data: x\nevent: lost\n\ndata: {}\nevent\nid: 7\n\nid: 8\rdata: 3\r\rdata: unfinished\n";
  const expected: unknown[] = [];
  const parser = createParser({ onEvent: ({ id, event, data }) => expected.push({ id: Number(id ?? ""), event: event ?? "", data: JSON.parse(data) }) });
  parser.feed(text);
  assert.equal(expected.length, 4);
  for (let size = 1; size <= text.length; size += 1) {
    const parts = Array.from({ length: Math.ceil(text.length / size) }, (_, index) => text.slice(index * size, (index + 1) * size));
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
        controller.close();
      },
    });
    const frames = [];
    for await (const frame of framesOf(body)) frames.push(frame);
    assert.deepEqual(frames, expected);
  }
});

test("sizes have a unit in the plural", () => {
  assert.deepEqual([1, 104, 2_000, 3_500_000].map(bytes), ["1 byte", "104 bytes", "2 kB", "3.5 MB"]);
});

test("a copied text is readable without formatting", () => {
  const page = "https://a.example/web?doc=d&page=4";
  const markdown = [
    "# Pressure",
    `It is **6.5 bar** &amp; _no_ more [[1]](<${page}>).`,
    "- one\n- two\n  1. a\n  2. `b`",
    "| a | b |\n| --- | --- |\n| 1 | [x](https://b.example) |",
    `![Figure 2: Valve](/api/documents/d/figures/f.png) ([a.pdf, p. 4](<${page}>))`,
  ].join("\n\n");
  assert.equal(
    plainText(Lexer.lex(markdown), new Set([page])),
    "Pressure\n\nIt is 6.5 bar & no more [1].\n\n- one\n- two\n  1. a\n  2. b\n\na\tb\n1\tx (https://b.example)\n\n[Figure 2: Valve] (a.pdf, p. 4)",
  );
});

test("a file without a number is found by its page first", () => {
  const sources = [{ filename: "a.pdf", page_number: 1, doc_id: "old" }, { filename: "a.pdf", page_number: 3, doc_id: "new" }];
  assert.equal(docIdOf(sources, "a.pdf", 3), "new");
  assert.equal(docIdOf(sources, "a.pdf", 9), "old");
  assert.equal(docIdOf(sources, "b.pdf", 3), undefined);
});

test("a passage is previewed as text and short tables", () => {
  const rows = Array.from({ length: 9 }, (_, index) => `| HR-${index} | a \\| b<br>c | ${index} |`);
  const passage = ["## Spare *parts*", "See **below**:", "", "| No. | Part | Price |", "| --- | :-: | --: |", ...rows].join("\n");
  assert.deepEqual(excerptOf(passage), [
    { text: "Spare parts\nSee below:" },
    { rows: [["No.", "Part", "Price"], ...[0, 1, 2].map((index) => [`HR-${index}`, "a | b c", String(index)])] },
  ]);
  assert.deepEqual(excerptOf('<table class="x"><tr><th>Model<th>Bar</tr>\n<tr><td>A</td><td>6.5</td></tr></table>'), [
    { rows: [["Model", "Bar"], ["A", "6.5"]] },
  ]);
  assert.deepEqual(excerptOf("word ".repeat(100)), [{ text: `${"word ".repeat(59)}word …` }]);
  assert.deepEqual(excerptOf("if a < b and <b>c</b>"), [{ text: "if a < b and <b>c</b>" }]);
  assert.deepEqual(excerptOf(""), []);
});

test("a language that could not be determined is unknown", async () => {
  await load("de");
  assert.deepEqual(["und", "en", "hr"].map(languageName), ["Unbekannt", "Englisch", "Kroatisch"]);
});
