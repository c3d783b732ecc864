// An answer with its sources, to be used elsewhere: on the clipboard, or as a Markdown file.
import type { Citation, RunAnswer } from "../../api/types";
import { notify } from "../../stores/notices";
import { t } from "../../words/words";
import { placeOf } from "./chip";

export function asMarkdown(question: string, answer: RunAnswer): string {
  const sources = answer.citations.map(
    (citation) => `[${citation.n}] ${[citation.filename, placeOf(citation)].filter(Boolean).join(", ")}: ${saidBy(citation)}`,
  );
  const list = sources.length ? `\n\n## ${t("sources")}\n\n${sources.map((source) => `- ${source}`).join("\n")}` : "";
  return `# ${question}\n\n${answer.text}${list}\n`;
}

/** Rows are in the answer already; what is missing there is where they come from. */
function saidBy({ sql, quote, final_url }: Citation): string {
  return sql ? `\`${sql}\`` : `“${quote}”${final_url ? ` <${final_url}>` : ""}`;
}

export async function copyAnswer(question: string, answer: RunAnswer): Promise<void> {
  await navigator.clipboard.writeText(asMarkdown(question, answer));
  notify(t("copied"));
}

export function saveAnswer(question: string, answer: RunAnswer): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([asMarkdown(question, answer)], { type: "text/markdown" }));
  link.download = `${question.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) || "answer"}.md`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
