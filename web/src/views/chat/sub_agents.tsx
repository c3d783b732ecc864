// Sub-agents of a run: what each is for, why it was set to work, what it has found, and what it took.
import type { SubagentView } from "../../api/types";
import type { Budget, Child } from "../../model/run";
import { said } from "../../words/server";
import { t, tOf } from "../../words/words";

interface Props {
  live: readonly Child[];
  told: readonly SubagentView[];
  /** Of each of them; null = not known any more. */
  budget: Budget | null;
}

export function SubAgents({ live, told, budget }: Props) {
  if (!live.length && !told.length) return null;
  return (
    <ul class="agents" aria-label={t("agents")}>
      {told.length
        ? told.map((agent) => <Told key={agent.child_id} agent={agent} budget={budget} />)
        : live.map((child) => (
            <li key={child.key} class="agent">
              <strong>{tOf("profile", child.profile)}</strong>
              <span class="tag">{tOf("phase", child.phase)}</span>
              <p class="quiet small">
                {t("childFound", { passages: child.passages, findings: child.findings, proved: child.proved })}
              </p>
              <dl class="figures">
                <Figure name={t("agent.tokens")} value={child.tokens.toLocaleString()} of={budget?.tokens} at={child.tokens} />
                {child.costUsd > 0 && <Figure name={t("agent.cost")} value={money(child.costUsd)} />}
              </dl>
            </li>
          ))}
    </ul>
  );
}

function Told({ agent, budget }: { agent: SubagentView; budget: Budget | null }) {
  const seconds = agent.started_at ? secondsBetween(agent.started_at, agent.ended_at) : null;
  return (
    <li class="agent" data-status={agent.status}>
      <strong>{tOf("profile", agent.profile)}</strong>
      <span class="tag">{tOf("child", agent.status)}</span>
      {agent.reasons.map((reason, index) => (
        <p key={reason} class="small">
          {said("REASONS", agent.reason_codes[index] ?? "", reason)}
        </p>
      ))}
      <dl class="figures">
        <Figure name={t("agent.claims")} value={`${agent.proved} / ${agent.claims}`} />
        <Figure name={t("agent.turns")} value={String(agent.turns)} />
        <Figure name={t("agent.tokens")} value={agent.tokens.toLocaleString()} of={budget?.tokens} at={agent.tokens} />
        {seconds !== null && (
          <Figure name={t("agent.time")} value={t("seconds", { seconds })} of={budget && budget.latencyMs / 1000} at={seconds} />
        )}
        {agent.cost_usd > 0 && <Figure name={t("agent.cost")} value={money(agent.cost_usd)} />}
      </dl>
      {agent.tool_calls.length > 0 && (
        <ol class="timeline">
          {agent.tool_calls.map((call, index) => (
            <li key={index} data-status={call.success ? "done" : "failed"}>
              {tOf("tool", call.tool)} <span class="quiet">· {t("found", { count: call.result_count })}</span>
              <progress max={longest(agent)} value={call.duration_ms} aria-label={t("agent.time")} />
              <span class="quiet">{t("milliseconds", { count: call.duration_ms })}</span>
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

/** A figure; with a bar where it has a limit, `of`. */
function Figure({ name, value, of, at }: { name: string; value: string; of?: number | null; at?: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
      {of ? <dd><progress class="budget" max={of} value={at} aria-label={name} /></dd> : null}
    </div>
  );
}

function longest(agent: SubagentView): number {
  return Math.max(1, ...agent.tool_calls.map((call) => call.duration_ms));
}

function money(usd: number): string {
  return `$${usd.toFixed(4)}`;
}

/** Seconds between two ISO times, to a tenth; without an end, until now. */
export function secondsBetween(start: string, end: string | null): number {
  return Math.round(((end ? Date.parse(end) : Date.now()) - Date.parse(start)) / 100) / 10;
}
