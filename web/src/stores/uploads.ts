// Uploads: files are checked first and sent two at a time, with progress.
import { signal } from "@preact/signals";
import { CallError, change, read, upload } from "../api/request";
import type { DocumentDetail, UploadTicket } from "../api/types";
import { bytes, t } from "../words/words";
import { isUnsearchable, latest, phaseOf, update } from "./documents";
import { announce, notify, wordsOf } from "./notices";
import { site } from "./session";

export interface Upload {
  id: number;
  file: File;
  /** Name of the stored document. It differs from the file name if the user keeps both documents. */
  name: string;
  folder: string;
  /** `exists`: a document with this name exists, and the user has to choose what happens. */
  state: "waiting" | "sending" | "sent" | "exists" | "failed";
  /** Whether the upload may replace a document with the same name. */
  replace: boolean;
  share: number;
  error: string;
  /** Id of the resulting document, or of the existing document with the same name; empty until known. */
  docId: string;
}

export const uploads = signal<readonly Upload[]>([]);
/** Access list entries for new files; empty = private. */
export const audience = signal<readonly string[]>([]);
export const uploadProject = signal("");
const AT_ONCE = 2;
let count = 0;
const stopping = new Map<number, AbortController>();

export function addFiles(files: readonly { file: File; folder: string }[]): void {
  const added = files.map(({ file, folder }): Upload => {
    const error = refusalOf(file);
    return { id: (count += 1), file, name: file.name, folder, state: error ? "failed" : "waiting", replace: false, share: 0, error, docId: "" };
  });
  uploads.value = [...uploads.value, ...added];
  if (added.length) announce(t("announce.uploads", { count: added.length }));
  next();
}

/** Imports a web page as a document. */
export async function importPage(url: string): Promise<void> {
  await change("POST", "/api/documents/import", { url, ...chosen() });
  notify(t("upload.imported"));
}

/** Without an audience, a new document is private. */
const chosen = () => ({ project_id: uploadProject.value.trim() || null, acl: audience.value.length ? audience.value : null });
/** A replaced document keeps its access list and project. */
const KEPT = { project_id: null, acl: null };

export function refusalOf(file: File): string {
  const suffix = /\.[^.]*$/.exec(file.name)?.[0].toLowerCase() ?? "";
  if (!site.value.suffixes.includes(suffix)) return unknownKind(suffix);
  if (file.size > site.value.max_document_bytes) return t("upload.tooLarge", { limit: bytes(site.value.max_document_bytes) });
  return file.size ? "" : t("upload.empty");
}

/** Formats to convert to, by unsupported suffix. */
const BETTER: Record<string, string> = { ".doc": ".docx", ".dot": ".docx", ".odt": ".docx", ".rtf": ".docx", ".pages": ".docx", ".xls": ".xlsx", ".ods": ".xlsx", ".numbers": ".xlsx", ".ppt": ".pptx", ".odp": ".pptx", ".key": ".pptx", ".heic": ".jpg" };

function unknownKind(suffix: string): string {
  const better = BETTER[suffix];
  if (better && site.value.suffixes.includes(better)) return t("upload.saveAs", { suffix, better });
  if ([".zip", ".7z", ".rar", ".tar", ".gz"].includes(suffix)) return t("upload.unpack", { suffix });
  return t(suffix ? "upload.kind" : "upload.noSuffix", { suffix, kinds: site.value.suffixes.map((one) => one.slice(1)).join(", ") });
}

function next(): void {
  const sending = uploads.value.filter((one) => one.state === "sending").length;
  for (const one of uploads.value.filter((other) => other.state === "waiting").slice(0, Math.max(0, AT_ONCE - sending))) void start(one);
}

async function start(one: Upload): Promise<void> {
  const stop = new AbortController();
  stopping.set(one.id, stop);
  set(one.id, { state: "sending", error: "", share: 0 });
  try {
    const progress = (share: number) => set(one.id, { share });
    const docId = await (one.file.size > site.value.max_request_bytes ? sendToStorage : sendToApp)(one, progress, stop.signal);
    set(one.id, { state: "sent", share: 1, docId });
  } catch (error) {
    if (stop.signal.aborted) dismissUpload(one.id);
    else if (error instanceof CallError && error.status === 429) retryLater(one.id, error.retryAfterS);
    else if (error instanceof CallError && error.code === "DocumentExistsError") await askToReplace(one, error.location);
    else set(one.id, { state: "failed", error: wordsOf(error) });
  }
  stopping.delete(one.id);
  next();
}

async function askToReplace(one: Upload, location: string): Promise<void> {
  if (one.name !== one.file.name) return set(one.id, { state: "waiting", name: nextName(one.name) });
  const detail = await read<DocumentDetail>(location).catch(() => null);
  if (detail) update(detail);
  set(one.id, { state: "exists", docId: detail?.doc_id ?? "" });
  announce(t("upload.exists", { name: one.name }));
}

/** Returns the next name for a copy: `report.pdf`, `report (2).pdf`, `report (3).pdf`. */
function nextName(name: string): string {
  const [, stem, number, suffix] = /^(.*?)(?: \((\d+)\))?(\.[^.]*)?$/s.exec(name)!;
  return `${stem} (${Number(number ?? 1) + 1})${suffix ?? ""}`;
}

/** Uploads files with existing names, either as new versions of those documents or under new names. */
export function resolveExisting(ids: readonly number[], how: "replace" | "keepBoth"): void {
  for (const { id, name } of uploads.value.filter((one) => one.state === "exists" && ids.includes(one.id)))
    set(id, { state: "waiting", docId: "", ...(how === "replace" ? { replace: true } : { name: nextName(name) }) });
  next();
}

function retryLater(id: number, seconds: number): void {
  set(id, { state: "failed", error: t("error.busy", { seconds: seconds || 10 }) });
  setTimeout(() => retryUpload(id), (seconds || 10) * 1000);
}

async function sendToApp(one: Upload, onProgress: (share: number) => void, stop: AbortSignal): Promise<string> {
  const form = new FormData(); // fields first, because the app parses the form as a stream
  const { acl, project_id } = one.replace ? KEPT : chosen();
  for (const principal of acl ?? []) form.append("acl", principal);
  if (one.folder) form.append("folder", one.folder);
  if (project_id) form.append("project_id", project_id);
  form.append("replace", String(one.replace));
  form.append("file", one.file, one.name);
  const key = { "idempotency-key": crypto.randomUUID() };
  const detail = (await upload("POST", "/api/documents", form, key, onProgress, stop)) as DocumentDetail;
  if (!latest.value[detail.doc_id] || detail.status === "ready") update(detail); // unchanged files raise no event
  return detail.doc_id;
}

async function sendToStorage(one: Upload, onProgress: (share: number) => void, stop: AbortSignal): Promise<string> {
  const ticket = await change<UploadTicket>("POST", "/api/documents/uploads", {
    filename: one.name,
    folder: one.folder,
    ...(one.replace ? KEPT : chosen()),
    replace: one.replace,
    size_bytes: one.file.size,
  });
  await upload(ticket.method, ticket.url, one.file, ticket.headers, onProgress, stop);
  return ticket.doc_id;
}

export function retryUpload(id: number): void {
  const one = uploads.value.find((upload) => upload.id === id);
  if (one?.state !== "failed" || refusalOf(one.file)) return;
  set(id, { state: "waiting" });
  next();
}

export function dismissUpload(id: number): void {
  stopping.get(id)?.abort();
  uploads.value = uploads.value.filter((one) => one.id !== id);
}

/** Returns the phase of an upload, from its first byte until its document is ready, useless or has failed. */
export function phaseOfUpload(one: Upload): "waiting" | "sending" | "exists" | "working" | "ready" | "unsearchable" | "failed" {
  if (one.state !== "sent") return one.state;
  const document = latest.value[one.docId];
  if (!document) return "working";
  return isUnsearchable(document) ? "unsearchable" : phaseOf(document);
}

/** Reloads the status of uploaded files, whose events may have been missed without a stream. */
export async function refreshUploads(): Promise<void> {
  const open = uploads.value.filter((one) => phaseOfUpload(one) === "working");
  await Promise.all(open.map(async ({ docId }) => update(await read<DocumentDetail>(`/api/documents/${docId}`))));
}

export function dismissEnded(): void {
  const hasEnded = (one: Upload) => ["ready", "unsearchable", "failed"].includes(phaseOfUpload(one));
  uploads.value = uploads.value.filter((one) => !hasEnded(one));
}

function set(id: number, change: Partial<Upload>): void {
  uploads.value = uploads.value.map((one) => (one.id === id ? { ...one, ...change } : one));
}

/** Returns dropped files; files inside folders keep their paths. */
export async function filesOfDrop(items: DataTransferItemList): Promise<{ file: File; folder: string }[]> {
  // Collect all entries before the first await: the browser empties the list afterwards.
  const entries = [...items].flatMap((item) => item.webkitGetAsEntry() ?? []);
  return (await Promise.all(entries.map((entry) => filesOfEntry(entry, "")))).flat();
}

async function filesOfEntry(entry: FileSystemEntry, folder: string): Promise<{ file: File; folder: string }[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return file.name.startsWith(".") ? [] : [{ file, folder }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const inside: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) break;
    inside.push(...some);
  }
  const path = folder ? `${folder}/${entry.name}` : entry.name;
  return (await Promise.all(inside.map((one) => filesOfEntry(one, path)))).flat();
}
