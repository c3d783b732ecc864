// The audit trail: filtered, paged, and exported as CSV.
import { useEffect, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { AuditEntry, AuditPage } from "../../api/types";
import { attempt, wordsOf } from "../../stores/notices";
import { translationOf } from "../../words/server";
import { dateTime, t } from "../../words/words";
import { inWords, Table } from "./table";

const ACTIONS: readonly AuditEntry["action"][] = [
  "answer",
  "search",
  "list",
  "page",
  "download",
  "upload",
  "correct",
  "change_access",
  "publish",
  "reingest",
  "delete",
  "refused",
  "erase_person",
  "read_audit",
];
const PAGE = 100;
const MOST_PAGES = 200; // per export: 20,000 entries
const DELAY_MS = 300;

/** Returns the time `hours` ago, rounded to the hour so that the URL stays the same between renders. */
const sinceHours = (hours: number) => new Date((Math.floor(Date.now() / 3.6e6) - hours) * 3.6e6).toISOString();
const actionOf = (entry: AuditEntry) => translationOf("ACTIONS", entry.action, inWords(entry.action));

export function AuditTrail({ hours }: { hours: number }) {
  const [filter, setFilter] = useState({ user_id: "", doc_id: "", action: "" });
  const [entries, setEntries] = useState<readonly AuditEntry[]>([]);
  const [names, setNames] = useState<Readonly<Record<string, string>>>({});
  const [cursor, setCursor] = useState<string | null>(null);
  const [error, setError] = useState("");
  const [isOpen, setOpen] = useState(false);
  const given = Object.entries(filter).filter(([, value]) => value.trim());
  const path = (after = "") => `/api/audit?${new URLSearchParams([["limit", String(PAGE)], ["since", sinceHours(hours)], ...given, ...(after ? [["cursor", after]] : [])])}`;
  useEffect(() => {
    if (!isOpen) return;
    let isWanted = true;
    const look = () =>
      read<AuditPage>(path()).then(
        (page) => isWanted && (setEntries(page.entries), setNames(page.names), setCursor(page.cursor), setError("")),
        (failed) => isWanted && setError(wordsOf(failed)),
      );
    const timer = setTimeout(look, DELAY_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [isOpen, hours, filter]);
  const more = () =>
    attempt(async () => {
      const page = await read<AuditPage>(path(cursor!));
      setEntries([...entries, ...page.entries]);
      setNames({ ...names, ...page.names });
      setCursor(page.cursor);
    });
  const field = (name: "user_id" | "doc_id", label: string) => (
    <label class="inline-field">
      {label}
      <input value={filter[name]} onInput={(event) => setFilter({ ...filter, [name]: event.currentTarget.value })} />
    </label>
  );
  const rows = entries.map((one) => [
    <time class="time" dateTime={one.at}>{dateTime(one.at)}</time>,
    <bdi>{one.user_id}</bdi>,
    actionOf(one),
    one.origin,
    <Documents entry={one} names={names} />,
  ]);
  return (
    <details class="report" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("admin.trail")}</summary>
      <div class="upload-row">
        {field("user_id", t("admin.who"))}
        {field("doc_id", t("document"))}
        <label class="inline-field">
          {t("admin.what")}
          <select value={filter.action} onChange={(event) => setFilter({ ...filter, action: event.currentTarget.value })}>
            <option value="">{t("admin.everything")}</option>
            {ACTIONS.map((action) => (
              <option key={action} value={action}>
                {translationOf("ACTIONS", action, inWords(action))}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="button" onClick={() => attempt(() => save(path))}>
          {t("admin.export")}
        </button>
      </div>
      {error && <p role="alert">{error}</p>}
      <Table name={t("admin.trail")} head={[t("admin.when"), t("admin.who"), t("admin.what"), t("address"), t("document")]} rows={rows} />
      {cursor && (
        <button type="button" class="button quiet-button" onClick={more}>
          {t("more")}
        </button>
      )}
    </details>
  );
}

/** The documents of an entry; the first is shown by name while it exists. */
function Documents({ entry, names }: { entry: AuditEntry; names: Readonly<Record<string, string>> }) {
  const [first, ...others] = entry.doc_ids;
  if (!first) return <>{entry.subject}</>;
  const name = names[first] ?? first;
  return <bdi title={entry.doc_ids.join(", ")}>{others.length ? t("admin.andMore", { name, count: others.length }) : name}</bdi>;
}

/** Saves all matching entries as CSV. */
async function save(path: (after?: string) => string): Promise<void> {
  const lines = ["at,user_id,action,doc_ids,filenames,run_id,subject,origin"];
  let after = "";
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { entries, names, cursor } = await read<AuditPage>(path(after));
    const filenames = (one: AuditEntry) => one.doc_ids.flatMap((id) => names[id] ?? []).join("; ");
    lines.push(...entries.map((one) => [one.at, one.user_id, one.action, one.doc_ids.join(" "), filenames(one), one.run_id, one.subject, one.origin].map(cell).join(",")));
    if (!cursor) break;
    after = cursor;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
  link.download = "audit.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Quotes a CSV cell. An apostrophe keeps spreadsheets from evaluating it as a formula. */
function cell(value = ""): string {
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return `"${text.replaceAll('"', '""')}"`;
}
