// Brings files in: by choosing or dropping them, with who may read them, and how far each is.
import { useEffect, useState } from "preact/hooks";
import { IconButton } from "../../parts/button";
import { Prompt } from "../../parts/dialog";
import { Icon } from "../../parts/icons";
import { audiences, labelOf, loadAudiences } from "../../stores/audiences";
import { attempt } from "../../stores/notices";
import { site } from "../../stores/session";
import {
  addFiles,
  audience,
  dismissSent,
  dismissUpload,
  importPage,
  refusalOf,
  retryUpload,
  uploadProject,
  uploads,
  type Upload,
} from "../../stores/uploads";
import { bytes, t } from "../../words/words";

const MOST_URL_CHARS = 2000; // as the API takes

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
        <label class="inline-field">
          {t("upload.readers")}
          <select value={audience.value} onChange={(event) => (audience.value = event.currentTarget.value)}>
            <option value="">{t("audience.person")}</option>
            {audiences.value
              .filter((one) => one.kind !== "person")
              .map((one) => (
                <option key={one.principal} value={one.principal}>
                  {labelOf(one)}
                </option>
              ))}
          </select>
        </label>
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

function Chooser({ name, isFolder }: { name: string; isFolder: boolean }) {
  const [key, setKey] = useState(0); // a new input after each choice: the same file may be chosen again
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

function Uploads() {
  const done = uploads.value.filter((one) => one.state === "sent").length;
  return (
    <section class="uploads" aria-label={t("uploads")}>
      <div class="upload-row">
        <span class="small quiet">{t("upload.progress", { done, count: uploads.value.length })}</span>
        <button type="button" class="button quiet-button" onClick={dismissSent}>
          {t("upload.tidy")}
        </button>
      </div>
      <ul>
        {uploads.value.map((one) => (
          <OneUpload key={one.id} one={one} />
        ))}
      </ul>
    </section>
  );
}

function OneUpload({ one }: { one: Upload }) {
  return (
    <li data-state={one.state}>
      <bdi>{one.file.name}</bdi>
      <span class="quiet small">{one.state === "sent" ? t("upload.sent") : bytes(one.file.size)}</span>
      {one.state === "sending" && <progress max={1} value={one.share} aria-label={one.file.name} />}
      {one.error && <span class="small danger-text">{one.error}</span>}
      {one.state === "failed" && !refusalOf(one.file) && (
        <button type="button" class="button quiet-button" onClick={() => retryUpload(one.id)}>
          {t("tryAgain")}
        </button>
      )}
      {one.state !== "sent" && <IconButton icon="close" name={t("remove")} onClick={() => dismissUpload(one.id)} />}
    </li>
  );
}
