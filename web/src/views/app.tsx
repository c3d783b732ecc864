// The page's layout: threads on the left, the view in the middle, the source of a citation on the right.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { signedOut, signInAddress } from "../api/request";
import { IconButton } from "../parts/button";
import { DropTarget } from "../parts/drop_target";
import { lazy } from "../parts/lazy";
import { Notices } from "../parts/notices";
import { route } from "../routes";
import { t } from "../words/words";
import { ChatView } from "./chat/chat_view";
import { HoverCard } from "./chat/hover_card";
import { KeyHelp } from "./key_help";
import { Sidebar } from "./sidebar";
import { PagePanel } from "./sources/page_panel";
import { isWide } from "./sources/panel_head";
import { SourcePanel } from "./sources/source_panel";

// build.mjs names each file after its view; functions/site.py and infra/ list these names.
const documents = () => import("./documents/documents");
const DocumentsView = lazy(async () => (await documents()).DocumentsView);
const SharedView = lazy(async () => (await documents()).SharedView);
const DocumentPanel = lazy(async () => (await documents()).DocumentPanel);
const AccountView = lazy(async () => (await import("./account/account")).AccountView);
const AdminView = lazy(async () => (await import("./admin/admin")).AdminView);

export function App() {
  const [hasHelp, setHelp] = useState(false);
  const [hasSidebar, setSidebar] = useState(false); // only on narrow screens, where it is collapsible
  const { view, run, cite, thread, doc, page, share } = route.value;
  const hasSource = view === "chat" && run !== "" && cite > 0;
  const hasPage = (view === "chat" || view === "shared") && !hasSource && doc !== "" && page > 0;
  const hasDocument = view === "documents" && doc !== "";
  const hasPanel = hasSource || hasPage || hasDocument;
  useEffect(() => setSidebar(false), [view, thread, doc]);
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => onShortcut(event, () => setHelp(true), setSidebar);
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <div class={`app${hasPanel ? " with-source" : ""}${hasPanel && isWide.value ? " wide" : ""}${hasSidebar ? " with-sidebar" : ""}`}>
      <a class="skip" href="#main">
        {t("skip")}
      </a>
      {signedOut.value && <SignedOut />}
      <header class="topbar">
        <IconButton icon="menu" name={t("menu")} aria-expanded={hasSidebar} onClick={() => setSidebar(!hasSidebar)} />
        <span class="brand">Groundwork</span>
      </header>
      <Sidebar onHelp={() => setHelp(true)} />
      {hasSidebar && <button type="button" class="shade" aria-label={t("close")} onClick={() => setSidebar(false)} />}
      <main id="main" tabIndex={-1}>
        {view === "chat" && <ChatView />}
        {view === "documents" && <DocumentsView />}
        {view === "account" && <AccountView />}
        {view === "admin" && <AdminView />}
        {view === "shared" && <SharedView id={share} />}
      </main>
      {hasSource && <SourcePanel key={run} />}
      {hasPage && <PagePanel key={doc} />}
      {hasDocument && <DocumentPanel key={doc} docId={doc} />}
      {hasHelp && <KeyHelp onClose={() => setHelp(false)} />}
      <HoverCard />
      <DropTarget />
      <Notices />
    </div>
  );
}

function SignedOut() {
  return (
    <div class="banner" role="alert">
      {t("error.signedOut")} <a href={signInAddress()}>{t("signIn")}</a>
    </div>
  );
}

function onShortcut(event: KeyboardEvent, help: () => void, setSidebar: (isShown: boolean) => void): void {
  const isWriting = (event.target as Element).closest("input, textarea, select, [contenteditable]") !== null;
  const hasDialog = document.querySelector("dialog[open]") !== null;
  if (hasDialog || event.altKey) return;
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    setSidebar(true);
    setTimeout(() => document.getElementById("thread-search")?.focus());
  } else if (event.key === "Escape") {
    setSidebar(false);
  } else if (event.ctrlKey || event.metaKey) {
    return;
  } else if (isWriting) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    document.getElementById("question")?.focus();
  } else if (event.key === "?") {
    help();
  }
}
