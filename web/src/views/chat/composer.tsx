// The composer: the question, its scope and the effort.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { AgentList } from "../../api/types";
import { IconButton } from "../../parts/button";
import { Icon } from "../../parts/icons";
import { Menu } from "../../parts/menu";
import {
  ask,
  cancel,
  draft,
  editing,
  isDeep,
  queued,
  scope,
  sendError,
  turns,
  unqueue,
  waitingTurn,
  workingTurn,
  write,
} from "../../stores/chat";
import { useLabels } from "../../stores/namesakes";
import { attempt } from "../../stores/notices";
import { site } from "../../stores/session";
import { t } from "../../words/words";
import { allSent, attachFiles, files, filesOfPaste } from "../../stores/thread_files";
import { AttachButton, Attachments } from "./attachments";
import { ScopeDialog } from "./scope_dialog";

const NEAR_LIMIT = 0.9;
const MAX_REPLY_CHARS = 500; // limit of the API

export function Composer({ onSend }: { onSend(): void }) {
  const [isChoosing, setChoosing] = useState(false);
  const isReply = waitingTurn.value !== undefined && !editing.value;
  const working = workingTurn.value;
  const limit = isReply ? MAX_REPLY_CHARS : site.value.max_question_chars;
  const isTooLong = draft.value.length > limit;
  const isSending = turns.value.some((turn) => !turn.runId);
  const isReady = draft.value.trim() !== "" && !isTooLong && !isSending;
  const send = () => {
    if (!isReady) return;
    void allSent().then(() => ask(files.value.length > 0));
    requestAnimationFrame(onSend);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  const onPaste = (event: ClipboardEvent) => {
    const pasted = filesOfPaste(event.clipboardData);
    if (!pasted.length) return;
    event.preventDefault();
    void attachFiles(pasted);
  };
  return (
    <form class="composer" onSubmit={(event) => (event.preventDefault(), send())}>
      {sendError.value && (
        <p class="failure" role="alert">
          {sendError.value}
        </p>
      )}
      {editing.value && (
        <ul class="scoped">
          <li>
            {t(files.value.length ? "editing.files" : "editing")}
            <IconButton icon="close" name={t("cancel")} onClick={() => (editing.value = null)} />
          </li>
        </ul>
      )}
      {queued.value.length > 0 && <Queue />}
      <Scoped />
      <Attachments />
      <div class="composer-box">
        <label class="unseen" for="question">
          {t(isReply ? "replyLabel" : "question")}
        </label>
        <textarea
          id="question"
          rows={1}
          placeholder={t(isReply ? "replyHint" : "question")}
          value={draft.value}
          aria-invalid={isTooLong}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={onKey}
          onPaste={onPaste}
        />
        <div class="composer-foot">
          <AttachButton />
          <Agents />
          <button type="button" class="toggle" aria-pressed={isDeep.value} title={t("deepText")} onClick={() => (isDeep.value = !isDeep.value)}>
            <Icon name="deep" /> {t("deep")}
          </button>
          <button type="button" class="toggle" onClick={() => setChoosing(true)}>
            <Icon name="scope" /> {t("scope")}
          </button>
          {draft.value.length > limit * NEAR_LIMIT && (
            <span class={isTooLong ? "small danger-text" : "small quiet"}>
              {draft.value.length.toLocaleString()} / {limit.toLocaleString()}
            </span>
          )}
          <span class="grow" />
          {(!working || isReady) && (
            <button type="submit" class="send" aria-label={t(working ? "sendLater" : "send")} title={t(working ? "sendLater" : "send")} disabled={!isReady}>
              <Icon name="send" />
            </button>
          )}
          {working && (
            <button type="button" class="send" aria-label={t("stop")} title={t("stop")} onClick={() => stop(working.runId)}>
              <Icon name="stop" />
            </button>
          )}
        </div>
      </div>
      {site.value.stand_in && <p class="stand-in">{t("standIn")}</p>}
      {isChoosing && <ScopeDialog onClose={() => setChoosing(false)} />}
    </form>
  );
}

function stop(runId: string): void {
  void attempt(() => cancel(runId));
  document.getElementById("question")?.focus();
}

/** Questions that are asked after the current answer. */
function Queue() {
  return (
    <ul class="scoped" aria-label={t("queue")}>
      {queued.value.map((question) => (
        <li key={question}>
          <span>
            {t("next")}: {question}
          </span>
          <IconButton icon="close" name={t("remove")} onClick={() => unqueue(question)} />
        </li>
      ))}
    </ul>
  );
}

const agents = signal<AgentList["agents"]>([]);

/** Lets the user choose an agent by name and description. */
function Agents() {
  useEffect(() => {
    if (!agents.value.length) void attempt(async () => (agents.value = (await read<AgentList>("/api/agents")).agents));
  }, []);
  if (!agents.value.length) return null;
  const choose = (agent: string) => {
    scope.value = { ...scope.value, agent };
    document.getElementById("question")?.focus();
  };
  const commands = [
    { name: t("agent.none"), about: t("agent.noneText"), isChosen: !scope.value.agent, act: () => choose("") },
    ...agents.value.map(({ name, description }) => ({ name, about: description, isChosen: scope.value.agent === name, act: () => choose(name) })),
  ];
  return <Menu name={t("agent.choose")} icon="person" label={scope.value.agent || t("agent.none")} commands={commands} />;
}

/** Shows the scope of the next question. */
function Scoped() {
  const { project, documents } = scope.value;
  const labels = useLabels(documents.map(({ id, name }) => ({ doc_id: id, filename: name })));
  if (!project && !documents.length) return null;
  return (
    <ul class="scoped" aria-label={t("scope")}>
      {project && (
        <li>
          {t("project")}: {project}
          <IconButton icon="close" name={t("remove")} onClick={() => (scope.value = { ...scope.value, project: "" })} />
        </li>
      )}
      {documents.map((document) => (
        <li key={document.id}>
          <bdi>{document.name}</bdi>
          {labels.has(document.id) && <small class="quiet">{labels.get(document.id)}</small>}
          <IconButton
            icon="close"
            name={t("remove")}
            onClick={() =>
              (scope.value = { ...scope.value, documents: documents.filter((one) => one.id !== document.id) })
            }
          />
        </li>
      ))}
    </ul>
  );
}
