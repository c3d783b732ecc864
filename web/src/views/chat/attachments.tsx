// Files for this conversation: a button to choose some, and their progress above the question.
import { useRef, useState } from "preact/hooks";
import type { ThreadFile } from "../../api/types";
import { IconButton } from "../../parts/button";
import { Confirm } from "../../parts/dialog";
import { turns } from "../../stores/chat";
import { attempt } from "../../stores/notices";
import { site } from "../../stores/session";
import { attachFiles, dismiss, files, isOver, removeFile, sending } from "../../stores/thread_files";
import { inEnglish, translationOf } from "../../words/server";
import { t, tOf } from "../../words/words";

export function AttachButton() {
  const input = useRef<HTMLInputElement>(null);
  const choose = (event: { currentTarget: HTMLInputElement }) => {
    void attachFiles([...(event.currentTarget.files ?? [])]);
    event.currentTarget.value = ""; // otherwise, choosing the same file again raises no event
    document.getElementById("question")?.focus();
  };
  return (
    <>
      <input ref={input} type="file" multiple hidden accept={site.value.suffixes.join(",")} onChange={choose} />
      <IconButton icon="add" name={t("files.add")} onClick={() => input.current!.click()} />
    </>
  );
}

export function Attachments() {
  const [asking, setAsking] = useState<ThreadFile | null>(null);
  if (!files.value.length && !sending.value.length) return null;
  const remove = (file: ThreadFile) => void attempt(() => removeFile(file));
  return (
    <ul class="scoped files" aria-label={t("files.list")} title={t("files.about")}>
      {files.value.map((file) => (
        <li key={file.doc_id}>
          <bdi>{file.filename}</bdi>
          <FileState file={file} />
          <IconButton icon="close" name={`${t("remove")}: ${file.filename}`} onClick={() => (turns.value.length ? setAsking(file) : remove(file))} />
        </li>
      ))}
      {sending.value.map((one) => (
        <li key={one.id}>
          <bdi>{one.name}</bdi>
          {one.error ? <small class="danger-text">{one.error}</small> : <progress max={1} value={one.share} aria-label={`${t("files.sending")}: ${one.name}`} />}
          {one.error && <IconButton icon="close" name={`${t("remove")}: ${one.name}`} onClick={() => dismiss(one.id)} />}
        </li>
      ))}
      {asking && (
        <Confirm title={t("remove")} text={t("files.removeText", { name: asking.filename })} action={t("remove")} onYes={() => remove(asking)} onClose={() => setAsking(null)} />
      )}
    </ul>
  );
}

function FileState({ file }: { file: ThreadFile }) {
  const reason = file.status_reason ?? "";
  const text = translationOf("FAILURES", file.failure ?? "", reason);
  const notes = file.warnings ?? [];
  if (file.status === "failed")
    return (
      <small class="danger-text" {...(text === reason && inEnglish())}>
        {text || t("document.failed")}
      </small>
    );
  if (!isOver(file))
    return (
      <small class="quiet">
        <span class="dot running" /> {tOf("document", file.status)}
      </small>
    );
  return notes.length ? (
    <small class="warning-text" {...inEnglish()}>
      {notes.join(" ")}
    </small>
  ) : null;
}
