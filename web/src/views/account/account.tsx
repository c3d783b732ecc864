// The user's account: language, theme, memory; for administrators also a link to the reports.
import "../../shared";
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { change, read, signOutAddress } from "../../api/request";
import type { MemoriesDeleted, MemoryList, MemorySwitch, WorkspaceFile, WorkspaceList } from "../../api/types";
import { IconButton } from "../../parts/button";
import { Confirm } from "../../parts/dialog";
import { attempt, notify } from "../../stores/notices";
import { me, speak, theme, type Theme } from "../../stores/session";
import { bytes, dateTime, language, t, type Language } from "../../words/words";

const THEMES: readonly Theme[] = ["auto", "light", "dark"];
const LANGUAGES: readonly (readonly [Language, string])[] = [
  ["en", "English"],
  ["de", "Deutsch"],
];

export function AccountView() {
  useEffect(() => {
    document.title = `${t("account")} – Groundwork`;
  }, [language.value]);
  const person = me.value;
  return (
    <section class="page" aria-labelledby="account-title">
      <header class="page-head">
        <h1 id="account-title">{person?.name ?? t("account")}</h1>
        <a class="button" href={signOutAddress()}>
          {t("signOut")}
        </a>
      </header>
      {person?.department && <p class="quiet">{person.department}</p>}
      <div class="settings">
        <fieldset>
          <legend>{t("language")}</legend>
          {LANGUAGES.map(([code, name]) => (
            <label key={code} lang={code}>
              <input type="radio" name="language" checked={language.value === code} onChange={() => void attempt(() => speak(code))} /> {name}
            </label>
          ))}
        </fieldset>
        <fieldset>
          <legend>{t("theme")}</legend>
          {THEMES.map((one) => (
            <label key={one}>
              <input type="radio" name="theme" checked={theme.value === one} onChange={() => (theme.value = one)} /> {t(`theme.${one}`)}
            </label>
          ))}
        </fieldset>
      </div>
      <Memory />
      <Workspace />
    </section>
  );
}

/** Files that agents wrote for the user, if there are any. */
function Workspace() {
  const [files, setFiles] = useState<readonly WorkspaceFile[]>([]);
  const load = async () => setFiles((await read<WorkspaceList>("/api/workspace")).files);
  useEffect(() => void attempt(load), []);
  const path = (file: WorkspaceFile) => `/api/workspace/${encodeURIComponent(file.name)}`;
  if (!files.length) return null;
  return (
    <section aria-labelledby="workspace-title">
      <h2 id="workspace-title">{t("workspace")}</h2>
      <p class="quiet">{t("workspace.text")}</p>
      <ul class="memories">
        {files.map((file) => (
          <li key={file.name}>
            <a href={path(file)} download={file.name}>
              {file.name}
            </a>{" "}
            <small class="quiet">{t("workspace.until", { size: bytes(file.size_bytes), date: dateTime(file.expires_at) })}</small>
            <IconButton
              icon="close"
              name={t("workspace.delete", { name: file.name })}
              onClick={() => void attempt(() => change("DELETE", path(file)).then(load))}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}

const memories = signal<MemoryList | null>(null);

function Memory() {
  const [isErasing, setErasing] = useState(false);
  useEffect(() => {
    void attempt(async () => (memories.value = await read<MemoryList>("/api/memory?limit=20")));
  }, []);
  const erase = () =>
    attempt(async () => {
      const { deleted } = await change<MemoriesDeleted>("DELETE", "/api/memory");
      memories.value = { ...memories.value!, memories: [], count: 0, cursor: null };
      notify(t("memory.erased", { count: deleted }));
    });
  const turn = (is_on: boolean) =>
    attempt(async () => {
      await change<MemorySwitch>("PUT", "/api/memory", { is_on });
      memories.value = { ...memories.value!, is_on };
    });
  const found = memories.value?.memories ?? [];
  return (
    <section aria-labelledby="memory-title">
      <h2 id="memory-title">{t("memory")}</h2>
      <p class="quiet">{t("memory.text")}</p>
      {memories.value && (
        <label>
          <input type="checkbox" checked={memories.value.is_on} onChange={(event) => turn(event.currentTarget.checked)} /> {t("memory.on")}
        </label>
      )}
      {memories.value && !found.length && <p>{t("memory.none")}</p>}
      {found.length > 0 && (
        <>
          <ul class="memories">
            {found.map((memory) => (
              <li key={memory.memory_id}>
                {memory.question} <small class="quiet">{dateTime(memory.created_at)}</small>
              </li>
            ))}
          </ul>
          <button type="button" class="button danger-text" onClick={() => setErasing(true)}>
            {t("memory.erase")}
          </button>
        </>
      )}
      {isErasing && (
        <Confirm
          title={t("memory.erase")}
          text={t("memory.eraseText")}
          action={t("memory.erase")}
          onYes={erase}
          onClose={() => setErasing(false)}
        />
      )}
    </section>
  );
}
