// One calm line that says what goes on; opened, it shows the plan, the tools and the sub-agents.
import { useEffect, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { RunView, SubagentView, TodoItem } from "../../api/types";
import { hasEnded, isOver, textOf, type Activity, type RunState } from "../../model/run";
import { cancel, type Turn } from "../../stores/chat";
import { attempt } from "../../stores/notices";
import { said } from "../../words/server";
import { t, tOf } from "../../words/words";
import { IconButton } from "../../parts/button";
import { secondsBetween, SubAgents } from "./sub_agents";

const LOOK_MS = 2000;

export function Progress({ turn, run }: { turn: Turn; run: RunState | null }) {
  const [isOpen, setOpen] = useState(false);
  const isWorking = !turn.runId || (run !== null && !isOver(run.status));
  const kept = useKept(turn.runId, isOpen && turn.runId !== "", isWorking);
  const isWaiting = run?.status === "waiting";
  const isDone = !isWorking && turn.message === null && run?.status === "completed";
  return (
    <div class={`progress${isWorking ? " working" : ""}`}>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          {isWorking && <span class={isWaiting ? "dot waiting" : "dot running"} />}
          <span class="progress-text">{isWorking ? (isWaiting ? t("status.waiting") : whatGoesOn(run)) : t("how")}</span>
          {isWorking && !isWaiting && turn.runId && (
            <Elapsed since={run?.resumedAt || turn.askedAt} budgetMs={run?.budget.latencyMs ?? 0} />
          )}
        </summary>
        {isOpen && (
          <div class="plan">
            <Plan todo={run?.todo.length ? run.todo : (kept?.todo ?? [])} isWorking={isWorking} />
            {run?.delegation && <Reasons codes={run.delegation.codes} english={run.delegation.reasons} />}
            {run && <Trail activities={run.activities} />}
            <SubAgents live={run?.children ?? []} told={agentsOf(turn, run, kept)} budget={run?.delegation?.budget ?? null} />
          </div>
        )}
      </details>
      {isWorking && turn.runId && (
        <IconButton icon="stop" name={t("stop")} onClick={() => attempt(() => cancel(turn.runId))} />
      )}
      {isDone && textOf(run) === "" && <span class="quiet">{t("emptyAnswer")}</span>}
    </div>
  );
}

/** What the run's own record says: asked for when somebody looks, and again while it works. */
function useKept(runId: string, isWanted: boolean, isWorking: boolean): RunView | null {
  const [kept, setKept] = useState<RunView | null>(null);
  useEffect(() => {
    if (!isWanted) return;
    const look = () => read<RunView>(`/api/runs/${runId}`).then(setKept, () => {});
    void look();
    if (!isWorking) return;
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [runId, isWanted, isWorking]);
  return kept;
}

function agentsOf(turn: Turn, run: RunState | null, kept: RunView | null): readonly SubagentView[] {
  const answered = run?.answer ?? turn.message?.answer;
  return answered?.sub_agents.length ? answered.sub_agents : (kept?.sub_agents ?? []);
}

function whatGoesOn(run: RunState | null): string {
  if (!run) return t("sending");
  const last = run.activities.at(-1);
  if (run.children.some((child) => !hasEnded(child.phase)))
    return t("agentsWork", { count: run.children.length });
  if (run.steps.length) return t("writing");
  return last ? wordsOf(last) : t("starting");
}

function wordsOf(activity: Activity): string {
  if (activity.kind === "thought") return tOf("thought", activity.code, activity.text, activity.counted);
  return tOf("tool", activity.tool);
}

/** Seconds, and of how many; the bar tells the same. */
function Elapsed({ since, budgetMs }: { since: string; budgetMs: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.round((now - Date.parse(since)) / 1000));
  if (!budgetMs) return <span class="quiet">{t("seconds", { seconds })}</span>;
  const budget = Math.round(budgetMs / 1000);
  return (
    <>
      <span class="quiet time">{t("secondsOf", { seconds, budget })}</span>
      <progress class="budget" max={budget} value={seconds} aria-label={t("agent.time")} />
    </>
  );
}

function Plan({ todo, isWorking }: { todo: readonly TodoItem[]; isWorking: boolean }) {
  if (!todo.length) return null;
  // What was under way when a run was stopped stays so in its record.
  const statusOf = ({ status }: TodoItem) => (status === "in_progress" && !isWorking ? "pending" : status);
  return (
    <ol class="todo" aria-label={t("plan")}>
      {todo.map((item) => (
        <li key={item.position} data-status={statusOf(item)}>
          <span class="unseen">{tOf("todo", statusOf(item))}: </span>
          {item.description}
          <small>{item.acceptance_criteria}</small>
        </li>
      ))}
    </ol>
  );
}

function Reasons({ codes, english }: { codes: readonly string[]; english: readonly string[] }) {
  return (
    <ul class="quiet small reasons">
      {english.map((reason, index) => (
        <li key={reason}>{said("REASONS", codes[index] ?? "", reason)}</li>
      ))}
    </ul>
  );
}

function Trail({ activities }: { activities: readonly Activity[] }) {
  return (
    <ul class="trail">
      {activities.map((activity, index) => (
        <li key={index} data-status={activity.status} class={activity.child < 0 ? "" : "of-child"}>
          {wordsOf(activity)}
          {activity.kind === "tool" && activity.status === "done" && (
            <span class="quiet">
              {activity.found !== null && ` · ${t("found", { count: activity.found })}`}
              {activity.endedAt && ` · ${t("seconds", { seconds: secondsBetween(activity.startedAt, activity.endedAt) })}`}
            </span>
          )}
          {activity.status === "failed" && <span class="quiet"> · {t("toolFailed")}</span>}
        </li>
      ))}
    </ul>
  );
}
