// For administrators: answer quality, the audit trail, sub-agents, failures, and consistency of the stores.
import "../../shared";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { AuditReport, FailedDocumentList, LibraryList, PoisonList, QualityMetrics, SubagentMetrics } from "../../api/types";
import { wordsOf } from "../../stores/notices";
import { translationOf } from "../../words/server";
import { me } from "../../stores/session";
import { dateTime, language, t, tOf } from "../../words/words";
import { AuditTrail } from "./audit_trail";
import { People } from "./people";
import { inWords, Table } from "./table";

const HOURS = [24, 168, 720] as const;
const MOST_SUBAGENT_HOURS = 168; // limit of the API

export function AdminView() {
  const [hours, setHours] = useState<number>(24);
  useEffect(() => {
    document.title = `${t("admin")} – Groundwork`;
  }, [language.value]);
  if (!me.value?.is_administrator) return <p class="page quiet">{t("admin.notYours")}</p>;
  return (
    <section class="page administration" aria-labelledby="admin-title">
      <header class="page-head">
        <h1 id="admin-title">{t("admin")}</h1>
        <label class="inline-field">
          {t("admin.time")}
          <select value={hours} onChange={(event) => setHours(Number(event.currentTarget.value))}>
            {HOURS.map((one) => (
              <option key={one} value={one}>
                {t("admin.days", { count: one / 24 })}
              </option>
            ))}
          </select>
        </label>
      </header>
      <Report name={t("admin.quality")} path={`/api/metrics/quality?hours=${hours}`} show={Quality} isOpenFirst />
      <AuditTrail hours={hours} />
      <Report name={t("agents")} path={`/api/metrics/subagents?hours=${Math.min(hours, MOST_SUBAGENT_HOURS)}`} show={SubAgents} />
      <Report name={t("admin.failed")} path="/api/maintenance/failed" show={Failed} />
      <People />
      <Report name={t("admin.sharepoint")} path="/api/sharepoint" show={Libraries} />
      <Report name={t("admin.poison")} path="/api/maintenance/poison" show={Poison} />
      <Report name={t("admin.audit")} path="/api/maintenance/audit" show={Audit} />
    </section>
  );
}

interface ReportProps<T> {
  name: string;
  path: string;
  show(report: T, name: string): ComponentChildren;
  isOpenFirst?: boolean;
}

/** A section that loads one report when it is opened. */
function Report<T>({ name, path, show, isOpenFirst = false }: ReportProps<T>) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  const [report, setReport] = useState<T | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    if (!isOpen) return;
    let isWanted = true;
    read<T>(path).then(
      (found) => isWanted && (setReport(found), setError("")),
      (failed) => isWanted && setError(wordsOf(failed)),
    );
    return () => {
      isWanted = false;
    };
  }, [isOpen, path]);
  return (
    <details class="report" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{name}</summary>
      {isOpen && (error ? <p role="alert">{error}</p> : report ? show(report, name) : <p class="quiet">{t("loading")}</p>)}
    </details>
  );
}

function number(value: number | null, isShare = false): string {
  if (value === null) return "–";
  return value.toLocaleString(language.value, isShare ? { style: "percent", maximumFractionDigits: 1 } : { maximumFractionDigits: 2 });
}

function Quality(report: QualityMetrics, name: string) {
  const rows = Object.entries(report.measures).map(([code, measure]) => [
    translationOf("MEASURES", code, inWords(code)),
    <Measured value={measure.value} isShare={(measure.aim ?? measure.value ?? 0) <= 1} />,
    number(measure.of),
    measure.aim === null ? "–" : `${measure.better === "higher" ? "≥" : "≤"} ${number(measure.aim, measure.aim <= 1)}`,
    measure.met === null ? "–" : t(measure.met ? "yes" : "no"),
  ]);
  return <Table name={name} head={[t("admin.measure"), t("admin.value"), t("admin.of"), t("admin.aim"), t("admin.met")]} rows={rows} />;
}

/** Renders a share as a bar and a number. */
function Measured({ value, isShare }: { value: number | null; isShare: boolean }) {
  return (
    <span class="measured">
      {isShare && value !== null && <meter value={value} aria-hidden="true" />}
      {number(value, isShare)}
    </span>
  );
}

function SubAgents(report: SubagentMetrics, name: string) {
  const rows = report.profiles.map((one) => [
    tOf("profile", one.profile),
    number(one.delegations),
    number(one.success_rate, true),
    number(one.timeout_rate, true),
    one.latency_p50_ms === null ? "–" : `${number(one.latency_p50_ms)} / ${number(one.latency_p95_ms)} ms`,
    number(one.tokens),
    number(one.citation_coverage, true),
  ]);
  const head = ["admin.profile", "admin.runs", "admin.success", "admin.timeouts", "admin.latency", "agent.tokens", "agent.claims"] as const;
  return <Table name={name} head={head.map((key) => t(key))} rows={rows} />;
}

function Failed({ documents, count }: FailedDocumentList, name: string) {
  const rows = documents.map((one) => [
    <bdi>{one.filename}</bdi>,
    <bdi>{one.owner_name ?? one.owner_id ?? "–"}</bdi>,
    translationOf("FAILURES", one.failure ?? "", one.status_reason ?? ""),
    <time class="time" dateTime={one.failed_at}>{dateTime(one.failed_at)}</time>,
  ]);
  return (
    <>
      {count > 0 && <p class="quiet">{t("admin.failedText", { count })}</p>}
      <Table name={name} head={[t("document"), t("owner.column"), t("admin.reason"), t("admin.when")]} rows={rows} />
    </>
  );
}

function Libraries({ libraries }: LibraryList, name: string) {
  if (!libraries.length) return <p class="quiet">{t("admin.noLibraries")}</p>;
  const rows = libraries.map(({ counts, ...one }) => [
    /^https:\/\//.test(one.web_url) ? <a href={one.web_url}>{one.name}</a> : one.name,
    tOf("library", one.status) + (one.error ? ` (${one.error})` : ""),
    one.succeeded_at ? dateTime(one.succeeded_at) : "–",
    number(counts.files),
    number(counts.hidden),
    Object.entries(counts.skipped).map(([reason, count]) => `${inWords(reason)}: ${number(count)}`).join(", ") || number(0),
  ]);
  const head = [t("title"), t("status"), t("admin.synchronised"), t("admin.files"), t("admin.hidden"), t("admin.skipped")];
  return <Table name={name} head={head} rows={rows} />;
}

function Poison(report: PoisonList, name: string) {
  const rows = report.messages.map((one) => [one.queue, one.inserted_at && dateTime(one.inserted_at), one.blob_name ?? one.thread_id ?? "–"]);
  return <Table name={name} head={[t("admin.queue"), t("added"), t("document")]} rows={rows} />;
}

function Audit(report: AuditReport, name: string) {
  const rows = report.differences.map((one) => [one.kind, one.place, one.detail]);
  return (
    <>
      <p>{report.agrees ? t("admin.agrees") : t("admin.differs", { count: report.difference_count })}</p>
      {rows.length > 0 && <Table name={name} head={[t("admin.kind"), t("admin.place"), t("admin.reason")]} rows={rows} />}
    </>
  );
}
