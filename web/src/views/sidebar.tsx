// The list of threads, and links to documents and account.
import { useEffect, useState } from "preact/hooks";
import type { ThreadView } from "../api/types";
import { Confirm, Prompt } from "../parts/dialog";
import { Icon, type IconName } from "../parts/icons";
import { Menu } from "../parts/menu";
import { addressOf, go, route, type View } from "../routes";
import { forgetTurns, leaveThread, openThread } from "../stores/chat";
import { attempt, notify } from "../stores/notices";
import { me } from "../stores/session";
import { forgetFiles } from "../stores/thread_files";
import {
  clearThread,
  deleteThread,
  hasMoreThreads,
  loadMoreThreads,
  loadThreads,
  renameThread,
  statusOf,
  threads,
  threadSearch,
} from "../stores/threads";
import { t } from "../words/words";

const isAtWork = (status: string): status is "running" | "waiting" => status === "running" || status === "waiting";
const REFRESH_MS = 10_000;
const SEARCH_DELAY_MS = 250;

export function Sidebar({ onHelp }: { onHelp(): void }) {
  useEffect(() => {
    void attempt(loadThreads);
    // This page gets no event when a run of another thread ends.
    const timer = setInterval(() => {
      const hasWork = threads.value.some((thread) => isAtWork(statusOf(thread)) && thread.thread_id !== openThread.value);
      if (hasWork && !document.hidden) void loadThreads().catch(() => {});
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <nav class="sidebar" aria-label={t("threads")}>
      <div class="sidebar-head">
        <span class="brand">Groundwork</span>
      </div>
      <Link to="chat" icon="add" name={t("newThread")} isCurrent={route.value.view === "chat" && !route.value.thread} />
      <Search />
      {threads.value.length ? (
        <ul class="threads">
          {threads.value.map((thread) => (
            <Thread key={thread.thread_id} thread={thread} />
          ))}
        </ul>
      ) : (
        <p class="threads quiet pad">{threadSearch.value ? t("noThreadsFound") : t("noThreads")}</p>
      )}
      {hasMoreThreads.value && (
        <button type="button" class="button quiet-button" onClick={() => attempt(loadMoreThreads)}>
          {t("more")}
        </button>
      )}
      <div class="sidebar-foot">
        <Link to="documents" icon="documents" name={t("documents")} isCurrent={route.value.view === "documents"} />
        {me.value?.is_administrator && <Link to="admin" icon="settings" name={t("admin")} isCurrent={route.value.view === "admin"} />}
        <Link to="account" icon="person" name={me.value?.name ?? t("account")} isCurrent={route.value.view === "account"} />
        <button type="button" class="nav-link" onClick={onHelp}>
          <kbd>?</kbd> {t("keys.title")}
        </button>
      </div>
    </nav>
  );
}

function Link({ to, icon, name, isCurrent }: { to: View; icon: IconName; name: string; isCurrent: boolean }) {
  const target = { view: to, thread: "", run: "", cite: 0, doc: "", page: 0 };
  const onClick = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (to === "chat") leaveThread();
    go(target);
    if (to === "chat") document.getElementById("question")?.focus();
  };
  return (
    <a class="nav-link" href={addressOf(target)} aria-current={isCurrent ? "page" : undefined} onClick={onClick}>
      <Icon name={icon} />
      <span>{name}</span>
    </a>
  );
}

function Search() {
  const [words, setWords] = useState(threadSearch.value);
  useEffect(() => {
    if (words === threadSearch.value) return;
    const timer = setTimeout(() => {
      threadSearch.value = words;
      void attempt(loadThreads);
    }, SEARCH_DELAY_MS);
    return () => clearTimeout(timer);
  }, [words]);
  return (
    <label class="search">
      <Icon name="search" />
      <span class="unseen">{t("searchThreads")}</span>
      <input
        id="thread-search"
        type="search"
        placeholder={t("searchThreads")}
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
      />
    </label>
  );
}

function Thread({ thread }: { thread: ThreadView }) {
  const [asking, setAsking] = useState<"" | "rename" | "clear" | "delete">("");
  const isCurrent = route.value.view === "chat" && route.value.thread === thread.thread_id;
  const status = statusOf(thread);
  const title = thread.title || t("untitled");
  const target = { view: "chat", thread: thread.thread_id, run: "", cite: 0, doc: "", page: 0 } as const;
  const close = () => setAsking("");
  return (
    <li class={isCurrent ? "thread current" : "thread"}>
      <a
        href={addressOf(target)}
        aria-current={isCurrent ? "page" : undefined}
        title={title}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          go(target);
        }}
      >
        {isAtWork(status) && (
          <span class={`dot ${status}`} role="img" aria-label={t(`status.${status}`)} />
        )}
        <span class="thread-title">{title}</span>
      </a>
      <Menu
        name={t("threadMenu", { title })}
        commands={[
          { name: t("rename"), act: () => setAsking("rename") },
          { name: t("clear"), act: () => setAsking("clear") },
          { name: t("delete"), act: () => setAsking("delete"), isDanger: true },
        ]}
      />
      {asking === "rename" && (
        <Prompt
          title={t("rename")}
          name={t("title")}
          action={t("save")}
          value={thread.title}
          maxLength={120}
          onSave={(title) => renameThread(thread, title)}
          onClose={close}
        />
      )}
      {asking === "clear" && (
        <Confirm title={t("clear")} text={t("clearText", { title })} action={t("clear")} onYes={() => clear(thread)} onClose={close} />
      )}
      {asking === "delete" && (
        <Confirm title={t("delete")} text={t("deleteText", { title })} action={t("delete")} onYes={() => remove(thread)} onClose={close} />
      )}
    </li>
  );
}

function clear(thread: ThreadView): void {
  void attempt(async () => {
    await clearThread(thread.thread_id);
    if (openThread.value === thread.thread_id) {
      forgetTurns();
      forgetFiles();
    }
    notify(t("cleared"));
  });
}

function remove(thread: ThreadView): void {
  void attempt(async () => {
    await deleteThread(thread.thread_id);
    if (route.value.thread === thread.thread_id) {
      leaveThread();
      go({});
    }
    notify(t("deleted"));
  });
}
