// Adds files by choosing or dropping them, sets who has access, and shows their progress.
import { useEffect, useState } from "preact/hooks";
import type { DocumentView } from "../../api/types";
import { IconButton } from "../../parts/button";
import { Dialog, Prompt } from "../../parts/dialog";
import { Icon } from "../../parts/icons";
import { loadAudiences, loadNames, nameOfPrincipal } from "../../stores/audiences";
import { turn } from "../../routes";
import { latest } from "../../stores/documents";
import { attempt } from "../../stores/notices";
import { me, site } from "../../stores/session";
import {
  addFiles,
  audience,
  dismissEnded,
  dismissUpload,
  importPage,
  phaseOfUpload,
  refreshUploads,
  refusalOf,
  resolveExisting,
  retryUpload,
  uploadProject,
  uploads,
  type Upload,
} from "../../stores/uploads";
import { bytes, t } from "../../words/words";
import { kindOf, Picker } from "./access_form";
import { Advice, reasonOf, State } from "./status";

const MOST_URL_CHARS = 2000; // limit of the API

export function UploadArea() {
  const [isImporting, setImporting] = useState(false);
  useEffect(() => void attempt(loadAudiences), []);
  return (
    <div class="upload">
      <div class="upload-row">
        <Chooser name={t("upload.files")} isFolder={false} />
        <Chooser name={t("upload.folder")} isFolder />
        {site.value.web_import && (
          <button type="button" class="button" onClick={() => setImporting(true)}>
            {t("upload.web")}
          </button>
        )}
        <span class="quiet small">{t("upload.drop")}</span>
      </div>
      <div class="upload-row">
        <Readers />
        <label class="inline-field">
          {t("project")}
          <input
            value={uploadProject.value}
            maxLength={128}
            placeholder={t("optional")}
            onInput={(event) => (uploadProject.value = event.currentTarget.value)}
          />
        </label>
      </div>
      {uploads.value.length > 0 && <Uploads />}
      {isImporting && (
        <Prompt
          title={t("upload.web")}
          name={t("address")}
          action={t("add")}
          maxLength={MOST_URL_CHARS}
          onSave={importPage}
          onClose={() => setImporting(false)}
        />
      )}
    </div>
  );
}

/** Who will have access to newly added files. */
function Readers() {
  const [isOpen, setOpen] = useState(false);
  const names = audience.value.map(nameOfPrincipal);
  const pick = (principal: string) => {
    audience.value = [...new Set([...audience.value, principal])];
    return Promise.resolve(true);
  };
  return (
    <div class="inline-field">
      {t("upload.readers")}
      <strong>{names.length ? [t("you"), ...names].join(", ") : t("audience.person")}</strong>
      <button type="button" class="link-button" onClick={() => setOpen(true)}>
        {t("change")}
      </button>
      {isOpen && (
        <Dialog title={t("upload.readers")} onClose={() => setOpen(false)}>
          <ul class="readers">
            {audience.value.map((one) => (
              <li key={one}>
                <span>
                  <bdi>{nameOfPrincipal(one)}</bdi> <small class="quiet">{kindOf(one)}</small>
                </span>
                <IconButton icon="close" name={`${t("remove")}: ${nameOfPrincipal(one)}`} onClick={() => (audience.value = audience.value.filter((other) => other !== one))} />
              </li>
            ))}
          </ul>
          {!audience.value.length && <p class="quiet">{t("upload.onlyYou")}</p>}
          <Picker taken={audience.value} onPick={pick} autofocus onDone={() => setOpen(false)} />
        </Dialog>
      )}
    </div>
  );
}

function Chooser({ name, isFolder }: { name: string; isFolder: boolean }) {
  const [key, setKey] = useState(0); // a new input element per choice, so that the same file can be chosen again
  const choose = (files: FileList | null) => {
    addFiles(
      [...(files ?? [])].map((file) => ({ file, folder: file.webkitRelativePath.split("/").slice(0, -1).join("/") })),
    );
    setKey(key + 1);
  };
  return (
    <label class={`button${isFolder ? "" : " primary"} file-button`}>
      <Icon name="upload" /> {name}
      <input
        key={key}
        class="unseen"
        type="file"
        multiple
        {...(isFolder ? { webkitdirectory: true } : {})}
        onChange={(event) => choose(event.currentTarget.files)}
      />
    </label>
  );
}

const ORDER = ["exists", "failed", "unsearchable", "sending", "working", "waiting", "ready"]; // documents that need attention first

function Uploads() {
  useEffect(() => void refreshUploads().catch(() => {}), []);
  const phases = uploads.value.map((one) => ({ one, phase: phaseOfUpload(one) }));
  const count = (phase: string) => phases.filter((other) => other.phase === phase).length;
  const failed = count("failed");
  const unsearchable = count("unsearchable");
  const finished = phases.filter(isFinished);
  const existing = phases.filter(({ phase }) => phase === "exists").map(({ one }) => one.id);
  return (
    <section class="uploads" aria-label={t("uploads")}>
      <div class="upload-row">
        <span class="small quiet" role="status">
          {t("upload.progress", { done: String(count("ready")), count: phases.length })}
          {unsearchable > 0 && <span class="warning-text"> · {t("upload.unsearchable", { count: unsearchable })}</span>}
          {existing.length > 0 && <span class="warning-text"> · {t("upload.undecided", { count: existing.length })}</span>}
          {failed > 0 && <span class="danger-text"> · {t("upload.failed", { count: failed })}</span>}
        </span>
        {existing.length > 1 && (
          <>
            <button type="button" class="button" onClick={() => resolveExisting(existing, "replace")}>
              {t("upload.replaceAll")}
            </button>
            <button type="button" class="button" onClick={() => resolveExisting(existing, "keepBoth")}>
              {t("upload.keepAll")}
            </button>
          </>
        )}
        <button type="button" class="button quiet-button" onClick={dismissEnded}>
          {t("upload.tidy")}
        </button>
      </div>
      <UploadList uploads={phases.filter((upload) => !isFinished(upload))} />
      {finished.length > 0 && (
        <details>
          <summary class="small">{t("upload.ready", { count: finished.length })}</summary>
          <UploadList uploads={finished} />
        </details>
      )}
    </section>
  );
}

interface Followed {
  one: Upload;
  phase: string;
}

/** Whether nothing is left to do or to know about an upload. */
const isFinished = ({ one, phase }: Followed) => phase === "ready" && !latest.value[one.docId]?.warnings?.length;

function UploadList({ uploads }: { uploads: readonly Followed[] }) {
  const sorted = [...uploads].sort((a, b) => ORDER.indexOf(a.phase) - ORDER.indexOf(b.phase));
  return (
    <ul>
      {sorted.map(({ one, phase }) => (
        <OneUpload key={one.id} one={one} phase={phase} />
      ))}
    </ul>
  );
}

/** Shows who has access to the document that a file would replace, if known, and lets the user choose. */
function Existing({ one, document }: { one: Upload; document: DocumentView | undefined }) {
  const others = (document?.acl ?? []).filter((principal) => principal !== me.value?.user_id);
  useEffect(() => void loadNames(others).catch(() => {}), [others.join("\n")]);
  const readers = others.map(nameOfPrincipal).join(", ");
  return (
    <>
      <span class="small warning-text">
        {t("upload.existsHere")} {readers ? t("upload.existsFor", { readers }) : document?.acl && t("upload.existsForYou")}
      </span>
      <button type="button" class="button" onClick={() => resolveExisting([one.id], "replace")}>
        {t("upload.replace")}
      </button>
      <button type="button" class="button" onClick={() => resolveExisting([one.id], "keepBoth")}>
        {t("upload.keepBoth")}
      </button>
    </>
  );
}

function OneUpload({ one, phase }: { one: Upload; phase: string }) {
  const document = latest.value[one.docId];
  const error = one.error || (document && phase === "failed" ? reasonOf(document).text : "");
  return (
    <li data-state={one.state} data-phase={phase}>
      <bdi class="upload-name">{one.folder ? `${one.folder}/${one.name}` : one.name}</bdi>
      {document && phase !== "exists" && <State document={document} />}
      {phase === "exists" && <Existing one={one} document={document} />}
      {!document && phase !== "failed" && phase !== "exists" && <span class="quiet small">{one.state === "sent" ? t("document.queued") : bytes(one.file.size)}</span>}
      {phase === "sending" && <progress max={1} value={one.share} aria-label={one.file.name} />}
      {error && <span class="small danger-text">{error}</span>}
      {document && phase === "unsearchable" && <Advice document={document} />}
      {document && (
        <button type="button" class="link-button small" onClick={() => turn({ doc: one.docId })}>
          {t("details")}
        </button>
      )}
      {one.state === "failed" && !refusalOf(one.file) && (
        <button type="button" class="link-button small" onClick={() => retryUpload(one.id)}>
          {t("tryAgain")}
        </button>
      )}
      <IconButton icon="close" name={`${t("remove")}: ${one.file.name}`} onClick={() => dismissUpload(one.id)} />
    </li>
  );
}
