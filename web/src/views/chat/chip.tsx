// A citation's number in the text. Hovering shows the quotation; a click opens the page.
import type { Citation } from "../../api/types";
import { route, turn } from "../../routes";
import { dateTime, moment, t } from "../../words/words";
import { openPage } from "../sources/page_panel";
import { hideCard, showCard } from "./hover_card";

export function placeOf(citation: Citation): string {
  if (citation.start_seconds !== null) return moment(citation.start_seconds);
  return pageOf(citation.page_number);
}

function pageOf(page: number | null): string {
  return page === null ? "" : t("page", { page: String(page) });
}

/** Returns the sheets, besides the cited one, that a query read, as file and page. */
export function otherSheets(citation: Citation): string[] {
  const sheets = (citation.tables ?? []).map((one) => [one.filename, pageOf(one.page_number)].filter(Boolean).join(", "));
  return [...new Set(sheets)].slice(1);
}

/** Whether the source is an external web page, quoted from a stored copy. */
export function isOutside(citation: Citation): boolean {
  return citation.kind === "web";
}

/** Databases have no page to open. */
export function isDatabase(citation: Citation): boolean {
  return citation.kind === "table" && !citation.url;
}

/** Returns the kind of a source that is not a document; empty for documents. */
export function kindOf(citation: Citation): string {
  return isOutside(citation) ? t("outside") : isDatabase(citation) ? t("database") : "";
}

/** Whether the quotation was found word for word, or the query repeated with the same result. */
export function isProved(citation: Citation): boolean {
  return citation.verified || citation.kind === "table";
}

export function proofOf(citation: Citation): string {
  if (isOutside(citation)) return t("proof.web", { date: dateTime(citation.fetched_at ?? "") });
  if (citation.kind === "metadata") return t("proof.metadata");
  if (citation.kind === "table") return t("proof.computed");
  if (!citation.quote) return t("proof.none");
  return citation.verified ? t("proof.verified") : t("proof.unproved");
}

export function openSource(runId: string, n: number): void {
  turn({ run: runId, cite: n, doc: "", page: 0 });
}

/** Opens the source of a citation. Readers of a shared answer have no run and see the page itself. */
function open(citation: Citation, runId: string): void {
  if (runId) openSource(runId, citation.n);
  else if (citation.doc_id) openPage(citation.doc_id, citation.page_number);
  else if (citation.final_url) window.open(citation.final_url, "_blank", "noopener");
}

interface Props {
  citation: Citation;
  runId: string;
  /** Distinguishes the document from others with the same name. */
  label?: string;
}

export function Chip({ citation, runId, label }: Props) {
  const isOpen = runId !== "" && route.value.run === runId && route.value.cite === citation.n;
  const kind = isOutside(citation) ? " outside" : isProved(citation) ? "" : " unproved";
  const name = [t("source", { n: String(citation.n) }), citation.filename, label, placeOf(citation), ...otherSheets(citation)].filter(Boolean).join(", ");
  const show = (event: Event) => showCard({ citation, label, at: event.currentTarget as HTMLElement });
  return (
    <button
      type="button"
      class={`chip${kind}${isOpen ? " open" : ""}`}
      aria-label={name}
      data-cite={`${runId}-${citation.n}`}
      onMouseEnter={show}
      onFocus={show}
      onMouseLeave={hideCard}
      onBlur={hideCard}
      onClick={() => (hideCard(), open(citation, runId))}
    >
      {citation.n}
    </button>
  );
}
