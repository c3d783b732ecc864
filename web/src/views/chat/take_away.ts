// Exports an answer with its sources: to the clipboard as text and formatted page, or as a Markdown file. Links are
// absolute, and pictures have signed URLs.
import { read } from "../../api/request";
import type { Citation, RunAnswer, RunView } from "../../api/types";
import { notify } from "../../stores/notices";
import { places, pieces } from "../../text/citations";
import { t } from "../../words/words";
import { placeOf } from "./chip";
import { formatted } from "./formatted";

/** Returns the URL of the cited page. Readers must sign in and have access. */
export function linkOf(citation: Pick<Citation, "doc_id" | "page_number" | "final_url">): string {
  if (citation.final_url) return citation.final_url;
  if (!citation.doc_id) return "";
  const query = new URLSearchParams({ doc: citation.doc_id, page: String(citation.page_number ?? 1) });
  return `${location.origin}/web?${query}`;
}

/** Signs the answer's picture URLs for at least an hour, so that they work without a session. */
async function withSignedFigures(answer: RunAnswer, runId: string): Promise<RunAnswer> {
  if (!answer.figures.length) return answer;
  const view = await read<RunView>(`/api/runs/${runId}`).catch(() => null);
  return { ...answer, figures: view?.answer?.figures ?? answer.figures };
}

export function asMarkdown(question: string, answer: RunAnswer): string {
  const list = answer.citations.map((citation) => {
    const name = [citation.filename, placeOf(citation)].filter(Boolean).join(", ");
    const link = linkOf(citation);
    return `- [${citation.n}] ${link ? `[${name}](<${link}>)` : name}: ${quoted(citation)}`;
  });
  const sources = list.length ? `\n\n## ${t("sources")}\n\n${list.join("\n")}` : "";
  return `# ${question}\n\n${portable(answer)}${sources}\n`;
}

/** Returns the text with references replaced by links; the source names are listed below it. */
function portable(answer: RunAnswer): string {
  const byNumber = new Map(answer.citations.map((citation) => [citation.n, citation]));
  const paths = new Map(answer.figures.map((figure) => [figure.path, figure.image_url ?? location.origin + figure.path]));
  const mark = (n: number) => {
    const link = linkOf(byNumber.get(n)!);
    return link ? `[[${n}]](<${link}>)` : `[${n}]`;
  };
  const text = pieces(answer.text, new Set(byNumber.keys()))
    .map((piece) => ("n" in piece ? mark(piece.n) : placed(piece.text)))
    .join("");
  return text.replace(/\]\((\/api\/documents\/[^()\s]+)\)/g, (whole, path: string) => (paths.has(path) ? `](<${paths.get(path)}>)` : whole));
}

function placed(text: string): string {
  return places(text)
    .map((part) => ("text" in part ? part.text : `(${part.file}${part.page ? `, ${t("page", { page: String(part.page) })}` : ""})`))
    .join("");
}

/** The answer already contains the rows, so only the query is exported. */
function quoted({ sql, quote }: Citation): string {
  return sql ? `\`${sql}\`` : `“${quote}”`;
}

export async function copyAnswer(question: string, answer: RunAnswer, runId: string): Promise<void> {
  const signed = await withSignedFigures(answer, runId);
  const text = asMarkdown(question, signed);
  const html = formatted(question, text.slice(text.indexOf("\n")));
  const item = new ClipboardItem({
    "text/plain": new Blob([text], { type: "text/plain" }),
    "text/html": new Blob([html], { type: "text/html" }),
  });
  await navigator.clipboard.write([item]);
  notify(t("copied"));
}

export async function saveAnswer(question: string, answer: RunAnswer, runId: string): Promise<void> {
  const text = asMarkdown(question, await withSignedFigures(answer, runId));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  link.download = `${question.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) || "answer"}.md`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
