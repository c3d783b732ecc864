// One document: status, summary, metadata, access list and actions.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { CallError, change, send } from "../../api/request";
import type { DocumentDetail, PageView } from "../../api/types";
import { Confirm } from "../../parts/dialog";
import { go, turn } from "../../routes";
import { leaveThread, NO_SCOPE, scope } from "../../stores/chat";
import { documents, forget, loadDocuments } from "../../stores/documents";
import { attempt, notify, wordsOf } from "../../stores/notices";
import { dateTime, t, tOf, type Key } from "../../words/words";
import { AccessForm } from "./access_form";
import { PageReader } from "../sources/page_panel";
import { focusSoon, PanelHead, panelRole, PanelTitle } from "../sources/panel_head";
import { MetadataForm } from "./metadata_form";
import { Status } from "./status";

export interface Known {
  detail: DocumentDetail;
  etag: string;
}

export async function readKnown(docId: string): Promise<Known> {
  return knownOf(await send("GET", `/api/documents/${docId}`));
}

async function knownOf(response: Response): Promise<Known> {
  return { detail: (await response.json()) as DocumentDetail, etag: response.headers.get("etag") ?? "" };
}

interface Change {
  method: "PATCH" | "PUT";
  /** The path below the document's URL. */
  path: string;
  body: unknown;
  /** Whether the fields to be replaced have the same values in the current version as in the known one. */
  isSame(now: DocumentDetail): boolean;
  /** Receives the current version if the fields differ. */
  onConflict(now: Known): void;
}

/**
 * Changes a document. If the document has changed since it was read, but not the fields to be replaced, for example
 * because its ingestion has ended, sends the change again with the new ETag.
 */
export async function saveKnown(known: Known, { method, path, body, isSame, onConflict }: Change): Promise<Known> {
  const docId = known.detail.doc_id;
  const save = async (etag: string) =>
    knownOf(await send(method, `/api/documents/${docId}${path}`, { body, headers: { "if-match": etag } }));
  try {
    return await save(known.etag);
  } catch (failed) {
    if (!(failed instanceof CallError && failed.status === 412)) throw failed;
    const now = await readKnown(docId);
    if (isSame(now.detail)) return save(now.etag);
    onConflict(now);
    throw failed;
  }
}

const rowOf = (docId: string) => document.querySelector<HTMLElement>(`[data-doc="${CSS.escape(docId)}"]`);

export function DocumentPanel({ docId }: { docId: string }) {
  const [known, setKnown] = useState<Known | null>(null);
  const [error, setError] = useState("");
  const panel = useRef<HTMLElement>(null);
  const listed = documents.value.find((one) => one.doc_id === docId);
  const load = () =>
    readKnown(docId).then(
      (found) => (setKnown(found), setError("")),
      (failed) => (setKnown(null), setError(wordsOf(failed, "error.noDocument"))),
    );
  useEffect(() => void load(), [docId, listed?.status, listed?.version]);
  useLayoutEffect(() => {
    panel.current?.focus({ preventScroll: true });
    rowOf(docId)?.scrollIntoView({ block: "nearest" }); // the narrower list has higher rows
  }, []);
  const close = () => {
    turn({ doc: "" });
    focusSoon(rowOf(docId));
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !(event.target as Element).closest("dialog")) close();
  };
  return (
    <section class="source" role={panelRole()} ref={panel} tabIndex={-1} aria-label={t("document")} onKeyDown={onKey}>
      <PanelHead onClose={close} />
      <div class="source-body">
        {error && <p role="alert">{error}</p>}
        {!known && !error && <p class="quiet">{t("loading")}</p>}
        {known && <Detail known={known} onChange={setKnown} onReload={load} />}
      </div>
    </section>
  );
}

interface Props {
  known: Known;
  onChange(known: Known): void;
  onReload(): void;
}

const SHORT_CHARS = 500; // about as long as a summary

/** Whether the preview shows a document's whole text and is so short that the summary would repeat it. */
function isShort({ page_count, picture, elements }: PageView): boolean {
  return page_count === 1 && !picture && elements.reduce((sum, { text }) => sum + text.length, 0) <= SHORT_CHARS;
}

function Detail({ known, onChange, onReload }: Props) {
  const { detail } = known;
  const [hasSummary, setSummary] = useState(detail.status !== "ready"); // otherwise once the preview is loaded
  const changed = (next: Known) => {
    onChange(next);
    void loadDocuments().catch(() => {});
  };
  return (
    <>
      <PanelTitle>{detail.title || detail.filename}</PanelTitle>
      <p class="small quiet">
        <bdi>{detail.filename}</bdi>
        {detail.folder && ` · ${detail.folder}`}
        {detail.page_count !== null && ` · ${t("pages", { count: detail.page_count })}`}
      </p>
      <div>
        <Status document={detail} />
      </div>
      {detail.status === "ready" && <Preview docId={detail.doc_id} onRead={(page) => setSummary(!page || !isShort(page))} />}
      <Actions detail={detail} onReload={onReload} />
      {hasSummary && (detail.summary_standard || detail.summary_brief) && <p>{detail.summary_standard || detail.summary_brief}</p>}
      {detail.access_via.length > 0 && (
        <p class="small quiet">
          {t("readableBy")} {detail.access_via.map((one) => tOf("via", one)).join(", ")}
        </p>
      )}
      {detail.may_change && <AccessForm key={`acl-${detail.doc_id}`} known={known} onChange={changed} />}
      {detail.status === "ready" && (
        <MetadataForm key={`meta-${detail.doc_id}`} known={known} canChange={detail.may_change} onChange={changed} />
      )}
      <History detail={detail} />
    </>
  );
}

function Preview({ docId, onRead }: { docId: string; onRead(page: PageView | null): void }) {
  const [page, setPage] = useState(1);
  return (
    <section class="preview" aria-label={t("preview")}>
      <PageReader docId={docId} page={page} onPage={setPage} onRead={onRead} />
    </section>
  );
}

function Actions({ detail, onReload }: { detail: DocumentDetail; onReload(): void }) {
  const [isDeleting, setDeleting] = useState(false);
  const path = `/api/documents/${detail.doc_id}`;
  const ask = () => {
    leaveThread();
    scope.value = { ...NO_SCOPE, documents: [{ id: detail.doc_id, name: detail.filename }] };
    go({});
    setTimeout(() => document.getElementById("question")?.focus()); // once the composer is rendered
  };
  const again = () =>
    attempt(async () => {
      await change("POST", `${path}/reingest`);
      onReload();
    });
  const remove = () =>
    attempt(async () => {
      await send("DELETE", path);
      forget(detail.doc_id);
      turn({ doc: "" });
      notify(t("deleted"));
    });
  return (
    <div class="button-row">
      {detail.status === "ready" && (
        <>
          <button type="button" class="button" onClick={ask}>
            {t("askThis")}
          </button>
          <a class="button" href={`${path}/readable`} target="_blank" rel="noopener">
            {t("wholeText")}
          </a>
          <a class="button" href={`${path}/content`} target="_blank" rel="noopener">
            {t("file")}
          </a>
        </>
      )}
      {detail.may_change && (
        <button type="button" class="button" onClick={() => document.querySelector<HTMLElement>(".access input")?.focus()}>
          {t("selection.share")}
        </button>
      )}
      {detail.may_change && (detail.status === "ready" || detail.status === "failed") && (
        <button type="button" class="button" onClick={again}>
          {t("reingest")}
        </button>
      )}
      {detail.may_change && (
        <button type="button" class="button danger-text" onClick={() => setDeleting(true)}>
          {t("delete")}
        </button>
      )}
      {isDeleting && (
        <Confirm
          title={t("delete")}
          text={t("deleteDocumentText", { name: detail.filename })}
          action={t("delete")}
          onYes={remove}
          onClose={() => setDeleting(false)}
        />
      )}
    </div>
  );
}

function History({ detail }: { detail: DocumentDetail }) {
  if (!detail.history.length) return null;
  return (
    <details>
      <summary class="small">{t("history")}</summary>
      <ol class="history small">
        {detail.history.map((phase, index) => (
          <li key={index}>
            {tOf("document" as Key, phase.status)} <span class="quiet">{dateTime(phase.at)}</span>
            {phase.seconds !== null && <span class="quiet"> · {t("seconds", { seconds: Math.max(0, Math.round(phase.seconds * 10) / 10) })}</span>}
          </li>
        ))}
      </ol>
    </details>
  );
}
