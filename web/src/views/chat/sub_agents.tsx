// A run's sub-agents: the task, the reason for delegating, and the findings of each.
import type { SubagentView } from "../../api/types";
import type { Child } from "../../model/run";
import { translationOf } from "../../words/server";
import { t, tOf } from "../../words/words";

interface Props {
  live: readonly Child[];
  reports: readonly SubagentView[];
}

export function SubAgents({ live, reports }: Props) {
  if (!live.length && !reports.length) return null;
  const reasons = reports.flatMap((agent) => agent.reasons.map((reason, index) => translationOf("REASONS", agent.reason_codes[index] ?? "", reason)));
  return (
    <section class="delegated" aria-label={t("agents")}>
      {reasons.length > 0 && <p class="quiet small">{[...new Set(reasons)].join(" ")}</p>}
      <ul class="agents">
        {reports.length
          ? reports.map((agent) => <Report key={agent.child_id} agent={agent} />)
          : live.map((child) => (
              <li key={child.key} class="agent">
                <strong>{tOf("profile", child.profile)}</strong>
                <span class="tag">{tOf("phase", child.phase)}</span>
                <p class="quiet small">
                  {t("childFound", { passages: child.passages, findings: child.findings, proved: child.proved })}
                </p>
              </li>
            ))}
      </ul>
    </section>
  );
}

function Report({ agent }: { agent: SubagentView }) {
  return (
    <li class="agent" data-status={agent.status}>
      <strong>{tOf("profile", agent.profile)}</strong>
      <span class="tag">{tOf("child", agent.status)}</span>
      <p class="small">
        {t("agentProved", { count: agent.claims, proved: agent.proved })}
        {agent.started_at && ` · ${t("seconds", { seconds: secondsBetween(agent.started_at, agent.ended_at) })}`}
      </p>
      {agent.tool_calls.length > 0 && (
        <ol class="timeline">
          {agent.tool_calls.map((call, index) => (
            <li key={index} data-status={call.success ? "done" : "failed"}>
              {tOf("tool", call.tool)} <span class="quiet">· {t("found", { count: call.result_count })}</span>
            </li>
          ))}
        </ol>
      )}
      {[...agent.uncertainty, ...agent.warnings].map((note) => (
        <p key={note} class="small warning-text">
          {note}
        </p>
      ))}
    </li>
  );
}

/** Returns the seconds between two ISO times, to a tenth; without an end, until now. */
export function secondsBetween(start: string, end: string | null): number {
  return Math.round(((end ? Date.parse(end) : Date.now()) - Date.parse(start)) / 100) / 10;
}
