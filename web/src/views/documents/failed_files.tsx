// Files that could not be read, one per line, above the list.
import { signal } from "@preact/signals";
import type { DocumentView } from "../../api/types";
import { send } from "../../api/request";
import { IconButton } from "../../parts/button";
import { turn } from "../../routes";
import { forget } from "../../stores/documents";
import { labelsOfListed } from "../../stores/namesakes";
import { attempt } from "../../stores/notices";
import { t } from "../../words/words";
import { inEnglish } from "../../words/server";
import { reasonOf } from "./status";

/** Kept while the list is reloaded or a file is tried again. */
const isOpen = signal(false);

export function FailedFiles({ failed }: { failed: readonly DocumentView[] }) {
  const labels = labelsOfListed(failed);
  return (
    <details class="failed-files" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>{t("failedFiles", { count: failed.length })}</summary>
      <ul>
        {failed.map((document) => (
          <Failed key={document.doc_id} document={document} label={labels.get(document.doc_id)} />
        ))}
      </ul>
    </details>
  );
}

function Failed({ document, label }: { document: DocumentView; label?: string }) {
  const reason = reasonOf(document);
  const dismiss = () =>
    attempt(async () => {
      await send("DELETE", `/api/documents/${document.doc_id}`);
      forget(document.doc_id);
    });
  return (
    <li>
      <bdi class="upload-name">{label ? `${document.filename} (${label})` : document.filename}</bdi>
      <span class="small danger-text one-line" {...(reason.isEnglish && inEnglish())}>
        {reason.text}
      </span>
      <button type="button" class="link-button small" data-doc={document.doc_id} onClick={() => turn({ doc: document.doc_id })}>
        {t("details")}
      </button>
      <IconButton icon="close" name={t("dismissFile", { name: document.filename })} onClick={dismiss} />
    </li>
  );
}
