// The source of a citation: the page's picture with the quotation marked, its text, and who has access.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { Citation, DocumentDetail, PageView, ReadableView, RunView } from "../../api/types";
import { IconButton } from "../../parts/button";
import { Icon } from "../../parts/icons";
import { route, turn } from "../../routes";
import { citationsOfTurn, turns } from "../../stores/chat";
import { useLabels } from "../../stores/namesakes";
import { wordsOf } from "../../stores/notices";
import { moment, t, tOf } from "../../words/words";
import { isDatabase, isOutside, isProved, kindOf, otherSheets, proofOf } from "../chat/chip";
import { Elements, marked } from "./elements";
import { Links, Origin, Pages } from "./page_links";
import { PagePicture } from "./page_picture";
import { focusSoon, PanelHead, panelRole, PanelTitle } from "./panel_head";
import { Quote } from "./quote";

export function SourcePanel() {
  const { run, cite } = route.value;
  const { citations, error } = useCitations(run);
  const citation = citations.find((one) => one.n === cite);
  const labels = useLabels(citations);
  const panel = useRef<HTMLElement>(null);
  const close = () => {
    turn({ run: "", cite: 0 });
    const chip = document.querySelector<HTMLElement>(`[data-cite="${CSS.escape(`${run}-${cite}`)}"]`);
    focusSoon(chip);
  };
  const step = (by: number) => {
    const at = citations.findIndex((one) => one.n === cite);
    const next = citations[at + by];
    if (next) turn({ cite: next.n }, "replaceState");
  };
  useLayoutEffect(() => panel.current?.focus({ preventScroll: true }), []);
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as Element;
      if (target.closest("dialog")) return;
      if (event.key === "Escape") return close();
      if (target.closest("input, textarea, select")) return;
      if (event.key === "[") step(-1);
      if (event.key === "]") step(1);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
  const at = citations.findIndex((one) => one.n === cite);
  useEffect(() => {
    // A link from another user's answer: show the page without marks.
    if (error && route.value.doc) turn({ run: "", cite: 0 }, "replaceState");
  }, [error]);
  return (
    <section class="source" role={panelRole()} ref={panel} tabIndex={-1} aria-label={t("sourcePanel")}>
      <PanelHead onClose={close}>
        <IconButton icon="back" name={t("previousCitation")} disabled={at <= 0} onClick={() => step(-1)} />
        <span class="small">{t("citationOf", { at: String(at + 1), count: citations.length })}</span>
        <IconButton icon="next" name={t("nextCitation")} disabled={at < 0 || at >= citations.length - 1} onClick={() => step(1)} />
      </PanelHead>
      {citation ? <Source key={`${run}-${cite}`} run={run} citation={citation} label={labels.get(citation.doc_id)} /> : <p class="pad quiet">{error || t("loading")}</p>}
    </section>
  );
}

/** Loads the citations of a run from the open thread, otherwise from the stored run. */
function useCitations(run: string): { citations: readonly Citation[]; error: string } {
  const [kept, setKept] = useState<readonly Citation[]>([]);
  const [error, setError] = useState("");
  const own = turns.value.find((one) => one.runId === run);
  useEffect(() => {
    if (own) return;
    read<RunView>(`/api/runs/${run}`).then(
      (view) => setKept(view.answer?.citations ?? []),
      (failed) => setError(wordsOf(failed, "error.noAnswer")),
    );
  }, [run, own !== undefined]);
  return { citations: own ? citationsOfTurn(own) : kept, error };
}

type Shown = { page: PageView; text: null } | { page: null; text: ReadableView };

function Source({ run, citation, label }: { run: string; citation: Citation; label?: string }) {
  const [shown, setShown] = useState<Shown | null>(null);
  const [error, setError] = useState("");
  const isPaged = citation.page_number !== null && citation.url.includes("/pages/");
  const [page, setPage] = useState(citation.page_number ?? 1);
  useEffect(() => {
    if (isOutside(citation) || isDatabase(citation)) return;
    const leaving = new AbortController();
    const isCited = page === (citation.page_number ?? 1);
    // Only the cited page sends the citation, which counts as opening the source.
    const query = isCited ? `run=${run}&n=${citation.n}` : "";
    const path = `/api/documents/${citation.doc_id}/${isPaged ? `pages/${page}?words=true&` : "readable?"}${query}`;
    const request = { signal: leaving.signal };
    const reading = isPaged
      ? read<PageView>(path, request).then((view): Shown => ({ page: view, text: null }))
      : read<ReadableView>(path, request).then((view): Shown => ({ page: null, text: view }));
    reading.then(
      (view) => (setShown(view), setError("")),
      (failed) => {
        if (leaving.signal.aborted) return;
        setShown(null); // access was revoked, so hide the source
        setError(wordsOf(failed, "error.noDocument"));
      },
    );
    return () => leaving.abort();
  }, [page]);
  const view = shown?.page ?? shown?.text ?? null;
  const cited = view?.cited ?? null;
  return (
    <div class="source-body">
      <PanelTitle>
        <bdi>{view?.title || citation.filename}</bdi>
      </PanelTitle>
      <p class="small quiet">
        {kindOf(citation) ? <span class="tag">{kindOf(citation)}</span> : <bdi>{citation.filename}</bdi>}{label && ` · ${label}`}{" "}
        {isOutside(citation) && <Origin url={citation.url} name={citation.url} />}
        {citation.published_by && <bdi> · {t("publishedBy", { name: citation.published_by })}</bdi>}
        {otherSheets(citation).map((sheet) => (
          <bdi key={sheet}> · {sheet}</bdi>
        ))}
      </p>
      {citation.quote && (view || isDatabase(citation) || !citation.sql) && (
        <blockquote class="quote">
          <div class="scroll" {...(citation.quote.startsWith("|") && { tabIndex: 0, role: "group", "aria-label": t("table") })}>
            <Quote text={citation.quote} />
          </div>
        </blockquote>
      )}
      {(view || isDatabase(citation)) && citation.sql && (
        <>
          <p>{citation.sql_in_words}</p>
          <pre>{citation.sql}</pre>
        </>
      )}
      <p class={isProved(citation) ? "proof" : "proof unproved"}>
        {isProved(citation) && <Icon name="check" />} {proofOf(citation)}
      </p>
      {error && <p role="alert">{error}</p>}
      {cited && !cited.is_marked && !citation.sql && <p class="small warning-text">{t("notFoundOnPage")}</p>}
      {shown?.page && (
        <>
          <PagePicture key={shown.page.page_number} page={shown.page} />
          {shown.page.has_pages && <Pages page={page} count={shown.page.page_count} onGo={setPage} />}
          <details open={!shown.page.picture}>
            <summary>{t("textOfPage")}</summary>
            <Elements elements={shown.page.elements} />
          </details>
        </>
      )}
      {shown?.text && (
        <>
          <Recording view={shown.text} citation={citation} />
          <Elements elements={shown.text.elements} isScrolled />
        </>
      )}
      {view && <Links docId={citation.doc_id} contentUrl={view.content_url} sourceUrl={view.source_url} />}
      {citation.context && <Snapshot text={citation.context} quote={citation.quote} />}
      {!kindOf(citation) && !error && <Readers docId={citation.doc_id} />}
    </div>
  );
}

/** The stored text of an external page around the quotation. */
function Snapshot({ text, quote }: { text: string; quote: string }) {
  const parts = quote.split(/\n+| … /).map((part) => ({ start: text.indexOf(part), length: part.length }));
  const marks = parts.filter(({ start }) => start >= 0).map(({ start, length }) => ({ start, end: start + length }));
  return <p class="snapshot">{marked(text, 0, text.length, marks)}</p>;
}

function Recording({ view, citation }: { view: ReadableView; citation: Citation }) {
  if (citation.start_seconds === null || !view.source_url || !/^https?:/.test(citation.url)) return null;
  return (
    <p>
      <a class="button" href={citation.url} target="_blank" rel="noopener noreferrer">
        <Icon name="external" /> {t("openRecording", { moment: moment(citation.start_seconds) })}
      </a>
    </p>
  );
}

function Readers({ docId }: { docId: string }) {
  const [via, setVia] = useState<DocumentDetail["access_via"]>([]);
  useEffect(() => {
    read<DocumentDetail>(`/api/documents/${docId}`).then(
      (detail) => setVia(detail.access_via),
      () => setVia([]),
    );
  }, [docId]);
  if (!via.length) return null;
  return (
    <p class="small quiet">
      {t("readableBy")} {via.map((one) => tOf("via", one)).join(", ")}
    </p>
  );
}
