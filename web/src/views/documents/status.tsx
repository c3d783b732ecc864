// A document's status, its problems, and what the owner can do about them.
import type { DocumentView } from "../../api/types";
import { isUnsearchable, phaseOf } from "../../stores/documents";
import { inEnglish, translationOf } from "../../words/server";
import { t, tOf, type Key } from "../../words/words";

function stateOf(document: DocumentView): string {
  const unreadable = document.unreadable_pages ?? 0;
  if (isUnsearchable(document)) return t(unreadable ? "ready.unreadable" : "ready.noText", { count: document.page_count ?? 1 });
  if (phaseOf(document) === "ready" && unreadable) return t("ready.partly", { unreadable, count: document.page_count ?? unreadable });
  const notes = document.warnings?.length ?? 0;
  return phaseOf(document) === "ready" && notes ? t("ready.notes", { count: notes }) : tOf("document" as Key, document.status);
}

/** The status in one short line, styled as `danger`, `warning` or neither. */
export function State({ document }: { document: DocumentView }) {
  const phase = phaseOf(document);
  const kind = phase === "failed" ? " failed" : isUnsearchable(document) || document.unreadable_pages ? " partly" : "";
  return (
    <span class={`state${kind}`}>
      {phase === "working" && <span class="dot running" />}
      {stateOf(document)}
    </span>
  );
}

/** Returns why processing failed, translated where possible. */
export function reasonOf(document: DocumentView): { text: string; isEnglish: boolean } {
  const text = translationOf("FAILURES", document.failure ?? "", document.status_reason ?? "");
  return { text, isEnglish: text === document.status_reason };
}

/** Advice for a document with pages without text, or without any text. */
export function Advice({ document }: { document: DocumentView }) {
  if (!document.unreadable_pages && !isUnsearchable(document)) return null;
  return <small class="block warning-text">{t(document.unreadable_pages ? "ready.advice" : "ready.noTextAdvice")}</small>;
}

/** The full status for the document's panel. */
export function Status({ document }: { document: DocumentView }) {
  const reason = reasonOf(document);
  return (
    <>
      <State document={document} />
      {reason.text && (
        <small class="block danger-text" {...(reason.isEnglish && inEnglish())}>
          {reason.text}
        </small>
      )}
      {document.hint && reason.isEnglish && (
        <small class="block" {...inEnglish()}>
          {document.hint}
        </small>
      )}
      {document.warnings?.map((warning) => (
        <small key={warning} class="block warning-text" {...inEnglish()}>
          {warning}
        </small>
      ))}
      <Advice document={document} />
    </>
  );
}
