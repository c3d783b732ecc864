// Exports an answer with its sources: to the clipboard as text and formatted page, or as a Markdown file. Links lead to
// the cited pages, and pictures are embedded, so that nothing expires.
import { Lexer } from "marked";
import { send } from "../../api/request";
import type { Citation, RunAnswer } from "../../api/types";
import { loadedLabels } from "../../stores/namesakes";
import { notify } from "../../stores/notices";
import { docIdOf, pieces, places } from "../../text/citations";
import { plainText } from "../../text/plain_text";
import { t } from "../../words/words";
import { withCaptions } from "./captions";
import { placeOf } from "./chip";
import { formatted } from "./formatted";

/** Returns the URL of the cited page. Readers must sign in and have access. */
export function linkOf(citation: Pick<Citation, "doc_id" | "page_number" | "final_url">): string {
  if (citation.final_url) return citation.final_url;
  return citation.doc_id ? pageLink(citation.doc_id, citation.page_number) : "";
}

function pageLink(docId: string, page: number | null): string {
  return `${location.origin}/web?${new URLSearchParams({ doc: docId, page: String(page ?? 1) })}`;
}

const MAX_WIDTH_PX = 800; // mail programs show pictures at their own size
const MAX_CHARS = 700_000; // of one picture; a larger PNG becomes a JPEG
const MAX_TOTAL_CHARS = 4_000_000; // mail servers commonly accept 10 MB or more

/** Returns the answer's pictures as data URIs by path. Those that cannot be read or exceed the limit are left out. */
async function picturesOf(answer: RunAnswer): Promise<ReadonlyMap<string, string>> {
  const pictures = new Map<string, string>();
  let total = 0;
  for (const { path } of answer.figures) {
    const uri = await dataUriOf(path).catch(() => "");
    total += uri.length;
    if (uri && total <= MAX_TOTAL_CHARS) pictures.set(path, uri);
  }
  return pictures;
}

async function dataUriOf(path: string): Promise<string> {
  const picture = await createImageBitmap(await (await send("GET", path)).blob());
  const scale = Math.min(1, MAX_WIDTH_PX / picture.width);
  const canvas = document.createElement("canvas");
  canvas.width = picture.width * scale;
  canvas.height = picture.height * scale;
  const context = canvas.getContext("2d")!;
  context.fillStyle = "#fff"; // transparent pixels would become black in a JPEG
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const png = canvas.toDataURL();
  return png.length > MAX_CHARS ? canvas.toDataURL("image/jpeg", 0.8) : png;
}

export function asMarkdown(question: string, answer: RunAnswer): string {
  const nameOf = namesIn(answer);
  const list = answer.citations.map((citation) => {
    const link = linkOf(citation);
    return `- [${citation.n}] ${link ? `[${nameOf(citation)}](<${link}>)` : nameOf(citation)}: ${quoted(citation)}`;
  });
  const sources = list.length ? `\n\n## ${t("sources")}\n\n${list.join("\n")}` : "";
  return `# ${question}\n\n${portable(answer)}${sources}\n`;
}

/** Returns readable text: numbers in the text, names and links of the sources below it. */
function asText(question: string, answer: RunAnswer): string {
  const { citations } = answer;
  const nameOf = namesIn(answer);
  const links = new Set([...citations.map(linkOf), ...answer.figures.map((one) => pageLink(one.doc_id, one.page_number))]);
  const list = citations.map((citation) => {
    const quote = citation.sql ?? `“${citation.quote.replace(/^\| *| *\|$/gm, "")}”`;
    return [`[${citation.n}] ${nameOf(citation)}: ${quote}`, linkOf(citation)].filter(Boolean).join("\n    ");
  });
  const parts = [question, plainText(Lexer.lex(portable(answer)), links), list.length ? `${t("sources")}\n${list.join("\n")}` : ""];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

/** Returns a function that names the place of a citation. Documents with the same name get the page's labels. */
function namesIn({ citations }: RunAnswer): (citation: Citation) => string {
  const labels = loadedLabels(citations);
  return (citation) => [citation.filename, labels.get(citation.doc_id), placeOf(citation)].filter(Boolean).join(", ");
}

/** Returns the text with references replaced by links; the source names are listed below it. */
function portable(answer: RunAnswer): string {
  const byNumber = new Map(answer.citations.map((citation) => [citation.n, citation]));
  const sources = [...answer.figures, ...answer.citations];
  const mark = (n: number) => {
    const link = linkOf(byNumber.get(n)!);
    return link ? `[[${n}]](<${link}>)` : `[${n}]`;
  };
  const place = (file: string, page: number | null) => {
    const name = [file, page && t("page", { page: String(page) })].filter(Boolean).join(", ");
    const docId = docIdOf(sources, file, page);
    return docId ? `([${name}](<${pageLink(docId, page)}>))` : `(${name})`;
  };
  const placed = (text: string) => places(text).map((part) => ("text" in part ? part.text : place(part.file, part.page))).join("");
  return pieces(withCaptions(answer.text), new Set(byNumber.keys()))
    .map((piece) => ("n" in piece ? mark(piece.n) : placed(piece.text)))
    .join("");
}

/** The answer already contains the rows, so only the query is exported. */
function quoted({ sql, quote }: Citation): string {
  return sql ? `\`${sql}\`` : `“${quote}”`;
}

async function asHtml(question: string, answer: RunAnswer): Promise<string> {
  const pictures = await picturesOf(answer);
  const figures = new Map(answer.figures.map((one) => [one.path, { link: pageLink(one.doc_id, one.page_number), uri: pictures.get(one.path) ?? "" }]));
  const markdown = asMarkdown(question, answer);
  return formatted(question, markdown.slice(markdown.indexOf("\n")), figures);
}

export async function copyAnswer(question: string, answer: RunAnswer): Promise<void> {
  const blob = (type: string, text: string) => new Blob([text], { type });
  // A promise, because browsers accept a write only soon after the click.
  const html = asHtml(question, answer).then((text) => blob("text/html", text));
  const item = new ClipboardItem({ "text/plain": blob("text/plain", asText(question, answer)), "text/html": html });
  await navigator.clipboard.write([item]);
  notify(t("copied"));
}

export async function saveAnswer(question: string, answer: RunAnswer): Promise<void> {
  let text = asMarkdown(question, answer);
  let number = 0;
  for (const [path, uri] of await picturesOf(answer)) {
    number += 1;
    text = `${text.replaceAll(`](${path})`, `][figure-${number}]`)}\n[figure-${number}]: ${uri}\n`; // at the end, because data URIs are long
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  link.download = `${question.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) || "answer"}.md`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
