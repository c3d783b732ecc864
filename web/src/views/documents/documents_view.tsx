// All documents: categories to click, a search, what is on its way, and the list.
import { useEffect, useState } from "preact/hooks";
import type { DocumentView } from "../../api/types";
import { Icon } from "../../parts/icons";
import { addressOf, route, turn } from "../../routes";
import {
  documentSearch,
  FACETS,
  facets,
  filters,
  hasMoreDocuments,
  isListed,
  loadDocuments,
  loadMoreDocuments,
  onlyStatus,
  phaseOf,
  shownDocuments,
  toggleFilter,
  watchDocuments,
  type Facet,
} from "../../stores/documents";
import { attempt } from "../../stores/notices";
import { inEnglish, said } from "../../words/server";
import { day, languageName, t, tOf, type Key } from "../../words/words";
import { UploadArea } from "./upload_area";

const SEARCH_DELAY_MS = 200;
const SHOWN_VALUES = 8;

export function DocumentsView() {
  useEffect(() => {
    document.title = `${t("documents")} – Groundwork`;
    const leaving = new AbortController();
    void attempt(() => watchDocuments(leaving.signal));
    return () => leaving.abort();
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => void attempt(loadDocuments), documentSearch.value ? SEARCH_DELAY_MS : 0);
    return () => clearTimeout(timer);
  }, [filters.value, documentSearch.value, onlyStatus.value]);
  return (
    <section class="page" aria-labelledby="documents-title">
      <header class="page-head">
        <h1 id="documents-title">{t("documents")}</h1>
        <label class="search">
          <Icon name="search" />
          <span class="unseen">{t("searchDocuments")}</span>
          <input
            type="search"
            placeholder={t("searchDocuments")}
            value={documentSearch.value}
            onInput={(event) => (documentSearch.value = event.currentTarget.value)}
          />
        </label>
      </header>
      <UploadArea />
      <Facets />
      <List />
    </section>
  );
}

function Facets() {
  const counts = facets.value;
  return (
    <div class="facets" role="group" aria-label={t("categories")}>
      <div class="facet">
        <span class="facet-name">{t("status")}</span>
        {(["working", "failed"] as const).map((status) => (
          <button
            key={status}
            type="button"
            class="facet-value"
            aria-pressed={onlyStatus.value === status}
            onClick={() => (onlyStatus.value = onlyStatus.value === status ? "" : status)}
          >
            {t(`phase.${status}`)}
          </button>
        ))}
      </div>
      {counts && FACETS.map((facet) => <FacetValues key={facet} facet={facet} values={counts[facet]} />)}
    </div>
  );
}

function FacetValues({ facet, values }: { facet: Facet; values: readonly { value: string; count: number }[] }) {
  const [isWhole, setWhole] = useState(false);
  if (!values.length) return null;
  const chosen = filters.value[facet] ?? [];
  const shown = isWhole ? values : values.filter((one, index) => index < SHOWN_VALUES || chosen.includes(one.value));
  return (
    <div class="facet">
      <span class="facet-name">{t(`facet.${facet}`)}</span>
      {shown.map((one) => (
        <button
          key={one.value}
          type="button"
          class="facet-value"
          aria-pressed={chosen.includes(one.value)}
          onClick={() => toggleFilter(facet, one.value)}
        >
          <bdi>{facet === "language" ? languageName(one.value) : one.value}</bdi> <span class="quiet">{one.count}</span>
        </button>
      ))}
      {values.length > SHOWN_VALUES && (
        <button type="button" class="facet-value more" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {t(isWhole ? "less" : "more")}
        </button>
      )}
    </div>
  );
}

function List() {
  const shown = shownDocuments.value;
  if (!isListed.value) return <p class="quiet">{t("loading")}</p>;
  if (!shown.length) return <p class="quiet">{t("noDocuments")}</p>;
  return (
    <div class="list">
      <div class="scroll">
        <table class="documents">
          <thead>
            <tr>
              <th scope="col">{t("title")}</th>
              <th scope="col">{t("facet.document_type")}</th>
              <th scope="col">{t("facet.project_id")}</th>
              <th scope="col">{t("added")}</th>
              <th scope="col">{t("status")}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((document) => (
              <Row key={document.doc_id} document={document} />
            ))}
          </tbody>
        </table>
      </div>
      {hasMoreDocuments.value && (
        <button type="button" class="button quiet-button" onClick={() => attempt(loadMoreDocuments)}>
          {t("more")}
        </button>
      )}
    </div>
  );
}

function Row({ document }: { document: DocumentView }) {
  const isOpen = route.value.doc === document.doc_id;
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    turn({ doc: document.doc_id });
  };
  return (
    <tr class={isOpen ? "current" : ""}>
      <th scope="row">
        <a href={addressOf({ ...route.value, doc: document.doc_id })} data-doc={document.doc_id} onClick={open}>
          {document.title || document.filename}
          {document.title && (
            <small class="quiet">
              <bdi>{document.filename}</bdi>
            </small>
          )}
        </a>
      </th>
      <td>{document.document_type}</td>
      <td>{document.project_id}</td>
      <td>{document.upload_date && day(document.upload_date)}</td>
      <td>
        <Status document={document} />
      </td>
    </tr>
  );
}

export function Status({ document }: { document: DocumentView }) {
  const phase = phaseOf(document);
  const reason = said("FAILURES", document.failure ?? "", document.status_reason ?? "");
  return (
    <>
      <span class={`state ${phase}`}>
        {phase === "working" && <span class="dot running" />}
        {tOf("document" as Key, document.status)}
      </span>
      {reason && (
        <small class="block danger-text" {...(reason === document.status_reason && inEnglish())}>
          {reason}
        </small>
      )}
      {document.hint && reason === document.status_reason && (
        <small class="block" {...inEnglish()}>
          {document.hint}
        </small>
      )}
      {document.warnings.map((warning) => (
        <small key={warning} class="block warning-text" {...inEnglish()}>
          {warning}
        </small>
      ))}
    </>
  );
}
