// Example questions sound like a person's, and ask what the documents say.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DocumentView } from "../src/api/types";
import { examplesFor } from "../src/model/example_questions";
import { load, t, type Language } from "../src/words/words";

const document = (filename: string, title: string, more: Partial<DocumentView> = {}) =>
  ({ doc_id: filename, filename, title, status: "ready", language: "en", tags: [], access_via: [], ...more }) as unknown as DocumentView;

async function questions(documents: DocumentView[], language: Language = "en", hasModel = false): Promise<string[]> {
  await load(language);
  return examplesFor(documents, language, hasModel).map((one) => ("text" in one ? one.text : t(one.key, one.values)));
}

const MANUAL = document("heron-400.pdf", "Heron 400: Operating Manual", { document_type: "manual", tags: ["heron", "relief valve", "seals"] });
const REPORTS = ["2024", "2023"].map((year) => document(`report-${year}.pdf`, "Fernhill Pumpworks: Annual Report", { document_type: "report" }));
const POLICY = document("leave.pdf", "Leave Policy", { document_type: "policy", tags: ["parental leave"] });

test("sentences with numbers become questions", async () => {
  for (const [sentence, question] of [
    ["Revenue in 2023 was 48.2 million euros.", "What was the revenue in 2023?"],
    ["In 2024 the export share was 58 percent of revenue.", "What was the export share in 2024?"],
    ["A guide. The core time is from 9:30 to 15:00.", "What is the core time?"],
    ["The fire drill on 6 March took 7 minutes.", "How long did the fire drill on 6 March take?"],
    ["Invoices are due within 30 days.", "When are invoices due?"],
    ["The Heron 400 weighs 68 kg.", "How much does the Heron 400 weigh?"],
  ] as const)
    assert.deepEqual(await questions([document("a.md", "Memo", { summary_brief: sentence })]), [question]);
  const german = document("a.md", "Memo", { language: "de", summary_brief: "Der Betriebsdruck beträgt 6,5 bar." });
  assert.deepEqual(await questions([german], "de"), ["Wie hoch ist der Betriebsdruck?"]);
  assert.deepEqual(await questions([german]), []); // in the page's language only
});

test("other sentences don't", async () => {
  for (const sentence of ["This is 7.", "The pump, which is old, is 7 years old.", "Never block the valve.", "The pump is delivered on a pallet."])
    assert.deepEqual(await questions([document("a.md", "Memo", { summary_brief: sentence })]), []);
});

test("two editions are compared, and titles are said as in a sentence", async () => {
  assert.deepEqual(await questions([MANUAL, ...REPORTS, POLICY]), [
    "What changed in the Fernhill Pumpworks annual report from 2023 to 2024?",
    "What are the main points of the Heron 400 operating manual?",
    "Can you summarise the Leave Policy?",
  ]);
  assert.deepEqual(await questions([MANUAL, POLICY], "en", true), [
    "What does the Heron 400 operating manual say about seals?",
    "What does the Leave Policy say about parental leave?",
  ]);
  assert.deepEqual(await questions([MANUAL, POLICY], "de", true), [
    "Was steht in „Heron 400: Operating Manual“ zum Thema relief valve?",
    "Was steht in „Leave Policy“ zum Thema parental leave?",
  ]);
  assert.deepEqual(await questions([document("a.html", "We use cookies"), document("b.txt", "MINUTES OF THE BOARD")]), [
    "What are the main points of “We use cookies”?",
    "Can you summarise the Minutes of the board?",
  ]);
});

test("documents of the same name are not compared", async () => {
  assert.deepEqual(await questions(["x", "y"].map((id) => document("price.md", "Price list", { doc_id: id }))), []);
});

test("there are at most four, two of them about facts", async () => {
  const facts = [1, 2, 3].map((one) => document(`f${one}.md`, `The plan of hall ${one}`, { summary_brief: `The height is ${one} m.` }));
  const shown = await questions([...facts, MANUAL, POLICY, ...REPORTS]);
  assert.equal(shown.length, 4);
  assert.equal(shown.filter((one) => one === "What is the height?").length, 2);
});
