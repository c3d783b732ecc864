// A page of a document, shown next to the conversation or in the document's panel.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { PageView } from "../../api/types";
import { route, turn } from "../../routes";
import { wordsOf } from "../../stores/notices";
import { t } from "../../words/words";
import { Elements } from "./elements";
import { Links, Pages } from "./page_links";
import { PagePicture } from "./page_picture";
import { focusSoon, PanelHead, panelRole, PanelTitle } from "./panel_head";

let opener: HTMLElement | null = null;

/** Opens a page next to the conversation. Closing it returns the focus to the opener. */
export function openPage(docId: string, page: number | null): void {
  opener = document.activeElement as HTMLElement | null;
  turn({ run: "", cite: 0, doc: docId, page: page ?? 1 });
}

export function PagePanel() {
  const { doc, page } = route.value;
  const panel = useRef<HTMLElement>(null);
  const close = () => {
    turn({ doc: "", page: 0 });
    focusSoon(opener);
  };
  useLayoutEffect(() => panel.current?.focus({ preventScroll: true }), []);
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape") close();
  };
  return (
    <section class="source" role={panelRole()} ref={panel} tabIndex={-1} aria-label={t("document")} onKeyDown={onKey}>
      <PanelHead onClose={close} />
      <div class="source-body">
        <PageReader key={doc} docId={doc} page={page} onPage={(next) => turn({ page: next }, "replaceState")} hasTitle />
      </div>
    </section>
  );
}

interface Props {
  docId: string;
  page: number;
  onPage(page: number): void;
  hasTitle?: boolean;
  /** Receives each page, or null if it can't be read. */
  onRead?(page: PageView | null): void;
}

/** Shows the picture of a page, or its text if there is none. */
export function PageReader({ docId, page, onPage, hasTitle = false, onRead }: Props) {
  const [view, setView] = useState<PageView | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const leaving = new AbortController();
    const show = (found: PageView | null, failure = "") => (setView(found), setError(failure), onRead?.(found));
    read<PageView>(`/api/documents/${docId}/pages/${page}?words=true`, { signal: leaving.signal }).then(
      (found) => show(found),
      (failed) => leaving.signal.aborted || show(null, wordsOf(failed, "error.noDocument")),
    );
    return () => leaving.abort();
  }, [docId, page]);
  if (error) return <p role="alert">{error}</p>;
  if (!view) return <p class="quiet">{t("loading")}</p>;
  return (
    <>
      {hasTitle && (
        <PanelTitle>
          <bdi>{view.title || view.filename}</bdi>
        </PanelTitle>
      )}
      <PagePicture key={view.page_number} page={view} />
      {view.has_pages && view.page_count > 1 && <Pages page={page} count={view.page_count} onGo={onPage} />}
      {hasTitle || !view.picture ? (
        <details open={!view.picture}>
          <summary>{t("textOfPage")}</summary>
          <Elements elements={view.elements} />
        </details>
      ) : null}
      {hasTitle && <Links docId={docId} contentUrl={view.content_url} sourceUrl={view.source_url} />}
    </>
  );
}
