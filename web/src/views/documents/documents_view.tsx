// All documents: categories, search, uploads and the list.
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
  isUnsearchable,
  loadDocuments,
  loadMoreDocuments,
  matchesAny,
  onlyStatus,
  phaseOf,
  projects,
  selected,
  shownDocuments,
  sort,
  toggleFilter,
  watchDocuments,
  type Facet,
  type Sort,
} from "../../stores/documents";
import { labelsOfListed } from "../../stores/namesakes";
import { attempt } from "../../stores/notices";
import { loadNames, nameOfPrincipal } from "../../stores/audiences";
import { me } from "../../stores/session";
import { typeName } from "../../words/server";
import { day, t } from "../../words/words";
import { FailedFiles } from "./failed_files";
import { shownValue } from "./metadata_form";
import { ProjectTree } from "./project_tree";
import { SelectionBar } from "./selection_bar";
import { Advice, reasonOf, State } from "./status";
import { UploadArea } from "./upload_area";

const SEARCH_DELAY_MS = 200;
const SHOWN_VALUES = 8;
const FEWEST = 3; // documents that a category needs to be offered

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
  }, [filters.value, documentSearch.value, matchesAny.value, onlyStatus.value, sort.value]);
  return (
    <section class="page documents-page" aria-labelledby="documents-title">
      <header class="page-head">
        <h1 id="documents-title">{t("documents")}</h1>
        <label class="search">
          <Icon name="search" />
          <span class="unseen">{t("searchDocuments")}</span>
          <input
            type="search"
            placeholder={t("searchDocuments")}
            value={documentSearch.value}
            onInput={(event) => {
              documentSearch.value = event.currentTarget.value;
              matchesAny.value = false;
            }}
          />
        </label>
      </header>
      <UploadArea />
      <Facets />
      <div class={projects.value.length ? "with-projects" : ""}>
        <ProjectTree />
        <List />
      </div>
    </section>
  );
}

const OFFERED = FACETS.filter((facet) => facet !== "project_id"); // projects are a tree

function Facets() {
  const [isOpen, setOpen] = useState(false);
  const counts = facets.value;
  const offered = OFFERED.map((facet) => ({ facet, values: offeredOf(facet, counts?.[facet] ?? []) })).filter(({ values }) => values.length);
  const chosen = OFFERED.flatMap((facet) => (filters.value[facet] ?? []).map((value) => ({ facet, value })));
  return (
    <div class="facets" role="group" aria-label={t("categories")}>
      <div class="facet-row">
        {offered.length > 0 && (
          <button type="button" class="facet-value facet-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {t("filters")} <span aria-hidden="true">{isOpen ? "▴" : "▾"}</span>
          </button>
        )}
        <span class="quiet small">{t("status")}</span>
        {(["working", "failed"] as const).map((status) => (
          <button
            key={status}
            type="button"
            class="facet-value capital"
            aria-pressed={onlyStatus.value === status}
            onClick={() => (onlyStatus.value = onlyStatus.value === status ? "" : status)}
          >
            {t(`phase.${status}`)}
          </button>
        ))}
        {!isOpen && chosen.map((one) => <FacetValue key={`${one.facet} ${one.value}`} {...one} />)}
      </div>
      {isOpen && offered.map((one) => <FacetValues key={one.facet} {...one} />)}
    </div>
  );
}

type Counted = readonly { value: string; count: number }[];

/** Returns the values worth offering: those that narrow the list, and those that already do. */
function offeredOf(facet: Facet, values: Counted): Counted {
  const chosen = filters.value[facet] ?? [];
  const offered = values.filter((one) => one.count >= FEWEST || chosen.includes(one.value));
  return offered.length > 1 || chosen.length ? offered : [];
}

function FacetValue({ facet, value, count }: { facet: Facet; value: string; count?: number }) {
  return (
    <button type="button" class="facet-value" aria-pressed={filters.value[facet]?.includes(value) ?? false} onClick={() => toggleFilter(facet, value)}>
      <bdi>{shownValue(facet, value)}</bdi> <span class="quiet">{count}</span>
    </button>
  );
}

function FacetValues({ facet, values }: { facet: Facet; values: Counted }) {
  const [isWhole, setWhole] = useState(false);
  const chosen = filters.value[facet] ?? [];
  const shown = isWhole ? values : values.filter((one, index) => index < SHOWN_VALUES || chosen.includes(one.value));
  return (
    <div class="facet">
      <span class="facet-name">{t(`facet.${facet}`)}</span>
      {shown.map((one) => (
        <FacetValue key={one.value} facet={facet} {...one} />
      ))}
      {values.length > SHOWN_VALUES && (
        <button type="button" class="facet-value more" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {t(isWhole ? "less" : "more")}
        </button>
      )}
    </div>
  );
}

/** Offers to search for any of several words, or for all of them again. */
function OtherMatch() {
  if (onlyStatus.value || !/\S\s+\S/.test(documentSearch.value)) return null;
  return (
    <button type="button" class="link-button" onClick={() => (matchesAny.value = !matchesAny.value)}>
      {t(matchesAny.value ? "search.all" : "search.any")}
    </button>
  );
}

function List() {
  const isFailed = (document: DocumentView) => phaseOf(document) === "failed" && onlyStatus.value !== "failed";
  const failed = shownDocuments.value.filter(isFailed);
  const shown = shownDocuments.value.filter((document) => !isFailed(document));
  const labels = labelsOfListed(shown);
  const columns = { project: shown.some(({ project_id }) => project_id), owner: shown.some(ownerOf) };
  const readers = [...new Set(shown.flatMap((document) => document.acl ?? []))];
  useEffect(() => void loadNames(readers).catch(() => {}), [readers.join("\n")]);
  const isAll = shown.length > 0 && shown.every(({ doc_id }) => selected.value.has(doc_id));
  if (!isListed.value) return <p class="quiet">{t("loading")}</p>;
  if (!shown.length && !failed.length)
    return (
      <p class="quiet" role="status">
        {t("noDocuments")} <OtherMatch />
      </p>
    );
  return (
    <div class="list">
      {failed.length > 0 && <FailedFiles failed={failed} />}
      <p class="quiet small" role="status">
        {facets.value && !onlyStatus.value && t("documentTotal", { count: facets.value.document_count })} <OtherMatch />
      </p>
      <SelectionBar />
      <div class="scroll">
        <table class="documents">
          <thead>
            <tr>
              <th scope="col" class="select">
                <input type="checkbox" aria-label={t("selection.all")} checked={isAll} onChange={() => (selected.value = new Set(isAll ? [] : shown.map(({ doc_id }) => doc_id)))} />
              </th>
              <SortHead field="title" name={t("title")} />
              <SortHead field="document_type" name={t("facet.document_type")} />
              {columns.project && <th scope="col">{t("facet.project_id")}</th>}
              {columns.owner && <th scope="col">{t("owner.column")}</th>}
              <th scope="col">{t("readers.column")}</th>
              <SortHead field="upload_date" name={t("added")} />
              <th scope="col">{t("status")}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((document) => (
              <Row key={document.doc_id} document={document} label={labels.get(document.doc_id)} columns={columns} />
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

/** A column header that sorts the list; a second click restores the default order. */
function SortHead({ field, name }: { field: Sort; name: string }) {
  const isSorted = sort.value === field;
  return (
    <th scope="col" aria-sort={isSorted ? (field === "upload_date" ? "descending" : "ascending") : undefined}>
      <button type="button" class="sort" onClick={() => (sort.value = isSorted ? "" : field)}>
        {name} {isSorted && <span aria-hidden="true">{field === "upload_date" ? "↓" : "↑"}</span>}
      </button>
    </th>
  );
}

const SHOWN_READERS = 2;

/** Who has access: names for the owner; for other users the reason for their own access. */
function ReadersOf({ document: { acl, access_via } }: { document: DocumentView }) {
  if (!acl) return <>{access_via.map((one) => t(`via.short.${one}`)).join(", ")}</>;
  const others = acl.filter((one) => one !== me.value?.user_id).map(nameOfPrincipal);
  if (!others.length) return <>{t("audience.person")}</>;
  const more = others.length - SHOWN_READERS;
  return (
    <span title={others.join(", ")}>
      {others.slice(0, SHOWN_READERS).join(", ")}
      {more > 0 && ` +${more}`}
    </span>
  );
}

function ownerOf({ access_via, published_by }: DocumentView): string {
  return access_via.includes("owner") ? t("you") : (published_by ?? "");
}

interface RowProps {
  document: DocumentView;
  /** Tells the document apart from others of the same name. */
  label?: string;
  /** Which columns have a value in any row. */
  columns: { project: boolean; owner: boolean };
}

function Row({ document, label, columns }: RowProps) {
  const isOpen = route.value.doc === document.doc_id;
  const toggle = () => {
    const next = new Set(selected.value);
    if (!next.delete(document.doc_id)) next.add(document.doc_id);
    selected.value = next;
  };
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    turn({ doc: document.doc_id });
  };
  return (
    <tr class={isOpen ? "current" : ""}>
      <td class="select">
        <input type="checkbox" aria-label={t("selection.one", { name: label ? `${document.filename} (${label})` : document.filename })} checked={selected.value.has(document.doc_id)} onChange={toggle} />
      </td>
      <th scope="row">
        <a href={addressOf({ ...route.value, doc: document.doc_id })} data-doc={document.doc_id} onClick={open}>
          {document.title || document.filename}
          {(document.title || label) && (
            <small class="quiet">
              {document.title && <bdi>{document.filename}</bdi>}
              {document.title && label && " · "}
              {label}
            </small>
          )}
        </a>
        {phaseOf(document) === "failed" && <small class="danger-text">{reasonOf(document).text}</small>}
        {isUnsearchable(document) && <Advice document={document} />}
      </th>
      <td>{typeName(document.document_type ?? "")}</td>
      {columns.project && <td>{document.project_id}</td>}
      {columns.owner && <td>{ownerOf(document) || "–"}</td>}
      <td>
        <ReadersOf document={document} />
      </td>
      <td class="date">{document.upload_date && day(document.upload_date)}</td>
      <td>
        <State document={document} />
      </td>
    </tr>
  );
}

