// Actions on several documents. Each document is a separate request, so one refusal does not affect the others.
import { useEffect, useState } from "preact/hooks";
import { change, CallError, send } from "../../api/request";
import type { DocumentDetail } from "../../api/types";
import { Confirm, Dialog, Prompt } from "../../parts/dialog";
import { documents, forget, loadDocuments, selected } from "../../stores/documents";
import { loadAudiences, loadNames, nameOfPrincipal } from "../../stores/audiences";
import { me } from "../../stores/session";
import { attempt, notify, wordsOf } from "../../stores/notices";
import { t } from "../../words/words";
import { kindOf, Picker } from "./access_form";
import { readKnown } from "./document_panel";

const AT_ONCE = 4; // concurrent requests; the server accepts five per user

/** Applies an action to each selected document, a few at a time, and reports successes and errors. */
async function withEach(act: (docId: string) => Promise<unknown>): Promise<void> {
  const waiting = [...selected.value];
  const failures: string[] = [];
  let done = 0;
  const work = async () => {
    for (let docId = waiting.shift(); docId; docId = waiting.shift()) {
      try {
        await act(docId);
        done += 1;
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        failures.push(wordsOf(error));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  notify(t("selection.done", { count: done }), false);
  if (failures.length) notify(`${t("selection.failed", { count: failures.length })} ${failures[0]}`, true);
  await loadDocuments();
}

/** Changes the access list or project of a document, based on its current state. */
async function changeAccess(docId: string, next: (detail: DocumentDetail) => object): Promise<void> {
  const { detail, etag } = await readKnown(docId);
  if (!detail.acl) throw new CallError(403, "AccessDeniedError", t("selection.notOwner"));
  await send("PUT", `/api/documents/${docId}/access`, { body: { acl: detail.acl, ...next(detail) }, headers: { "if-match": etag } });
}

/** Who else has access to the selected documents that the user may share, and to how many of them. */
function AccessNow() {
  const chosen = documents.value.filter((one) => selected.value.has(one.doc_id));
  const shareable = chosen.filter((one) => one.acl);
  const counts = new Map<string, number>();
  for (const { acl, access_via } of shareable)
    for (const principal of acl!)
      // Owners are also in the access list.
      if (principal !== me.value?.user_id || !access_via.includes("owner")) counts.set(principal, (counts.get(principal) ?? 0) + 1);
  const names = [...counts.keys()];
  useEffect(() => void loadNames(names).catch(() => {}), [names.join("\n")]);
  return (
    <section aria-labelledby="access-now">
      <h3 id="access-now">{t("accessNow")}</h3>
      <ul class="readers">
        {[...counts].map(([principal, count]) => (
          <li key={principal}>
            <span>
              <bdi>{nameOfPrincipal(principal)}</bdi> <small class="quiet">{kindOf(principal)}</small>
            </span>
            <small class="quiet">{t("accessTo", { at: count, count: String(shareable.length) })}</small>
          </li>
        ))}
      </ul>
      {!counts.size && shareable.length > 0 && <p class="quiet small">{t("onlyOwner")}</p>}
      {shareable.length < chosen.length && <p class="warning-text small">{t("selection.others", { count: chosen.length - shareable.length })}</p>}
    </section>
  );
}

export function SelectionBar() {
  const [asking, setAsking] = useState<"" | "share" | "move" | "delete">("");
  const count = selected.value.size;
  if (!count) return null;
  const hidden = count - documents.value.filter((one) => selected.value.has(one.doc_id)).length; // beyond the loaded pages
  const close = () => setAsking("");
  const run = (act: (docId: string) => Promise<unknown>) => void attempt(() => withEach(act));
  const share = (principal: string) => {
    close();
    run((docId) => changeAccess(docId, ({ acl }) => ({ acl: [...new Set([...acl!, principal])] })));
    return Promise.resolve(true);
  };
  return (
    <div class="selection" role="toolbar" aria-label={t("selection")}>
      <strong>{t("selection.count", { count })}</strong>
      {hidden > 0 && <span class="warning-text small">{t("selection.hidden", { count: hidden })}</span>}
      <button type="button" class="button" onClick={() => (void loadAudiences(), setAsking("share"))}>
        {t("selection.share")}
      </button>
      <button type="button" class="button" onClick={() => setAsking("move")}>
        {t("selection.move")}
      </button>
      <button type="button" class="button" onClick={() => run((docId) => change("POST", `/api/documents/${docId}/reingest`))}>
        {t("reingest")}
      </button>
      <button type="button" class="button danger-text" onClick={() => setAsking("delete")}>
        {t("delete")}
      </button>
      <button type="button" class="button quiet-button" onClick={() => (selected.value = new Set())}>
        {t("selection.none")}
      </button>
      {asking === "share" && (
        <Dialog title={t("selection.share")} onClose={close}>
          <p>{t("selection.shareText", { count })}</p>
          <Picker taken={[]} onPick={share} autofocus />
          <AccessNow />
        </Dialog>
      )}
      {asking === "move" && (
        <Prompt
          title={t("selection.move")}
          name={t("project")}
          action={t("selection.move")}
          maxLength={128}
          onSave={async (project_id) => run((docId) => changeAccess(docId, () => ({ project_id })))}
          onClose={close}
        />
      )}
      {asking === "delete" && (
        <Confirm
          title={t("delete")}
          text={t("selection.deleteText", { count })}
          action={t("delete")}
          onYes={() => run(async (docId) => (await send("DELETE", `/api/documents/${docId}`), forget(docId)))}
          onClose={close}
        />
      )}
    </div>
  );
}
