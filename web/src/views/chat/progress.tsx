// One line with the current activity; expanded, it shows the plan, the tools and the sub-agents.
import { useEffect, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { RunView, SubagentView, TodoItem } from "../../api/types";
import { hasEnded, isOver, textOf, type Activity, type RunState } from "../../model/run";
import { loadRecord, type Turn } from "../../stores/chat";
import { t, tOf } from "../../words/words";
import { secondsBetween, SubAgents } from "./sub_agents";

const LOOK_MS = 2000;

export function Progress({ turn, run }: { turn: Turn; run: RunState | null }) {
  const [isOpen, setOpen] = useState(false);
  const isWorking = !turn.runId || (run !== null && !isOver(run.status));
  const isWaiting = run?.status === "waiting";
  const isDone = !isWorking && turn.message === null && run?.status === "completed";
  return (
    <div class={`progress${isWorking ? " working" : ""}`}>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          {isWorking && <span class={isWaiting ? "dot waiting" : "dot running"} />}
          <span class="progress-text">{isWorking ? (isWaiting ? t("status.waiting") : whatGoesOn(run)) : t("how")}</span>
          {isWorking && !isWaiting && turn.runId && <Elapsed since={run?.resumedAt || turn.askedAt} />}
        </summary>
        {isOpen && turn.runId && <How turn={turn} run={run} isWorking={isWorking} />}
      </details>
      {isDone && textOf(run) === "" && <span class="quiet">{t("emptyAnswer")}</span>}
    </div>
  );
}

/** The plan, the steps and the sub-agents, from live events or stored ones. */
function How({ turn, run, isWorking }: { turn: Turn; run: RunState | null; isWorking: boolean }) {
  const [isRead, setRead] = useState(run !== null);
  useEffect(() => void loadRecord(turn).then(() => setRead(true)), [turn]);
  const kept = useKept(turn.runId, isWorking);
  const state = run ?? turn.record.value;
  const todo = state?.todo.length ? state.todo : (kept?.todo ?? []);
  const agents = agentsOf(turn, state, kept);
  const isEmpty = !todo.length && !state?.activities.length && !agents.length;
  return (
    <div class="plan">
      <Plan todo={todo} isWorking={isWorking} />
      {state && <Trail activities={state.activities} isWorking={isWorking} />}
      <SubAgents live={state?.children ?? []} reports={agents} />
      {[...new Set(state?.warnings)].map((warning) => (
        <p key={warning} class="small warning-text">
          {warning}
        </p>
      ))}
      {isEmpty && <p class="quiet">{t(isRead && !isWorking ? "howGone" : "loading")}</p>}
    </div>
  );
}

/** Loads the stored run when it is shown, and again while it is active. */
function useKept(runId: string, isWorking: boolean): RunView | null {
  const [kept, setKept] = useState<RunView | null>(null);
  useEffect(() => {
    const look = () => read<RunView>(`/api/runs/${runId}`).then(setKept, () => {});
    void look();
    if (!isWorking) return;
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [runId, isWorking]);
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

function Elapsed({ since }: { since: string }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <span class="quiet time">{t("seconds", { seconds: Math.max(0, Math.round((now - Date.parse(since)) / 1000)) })}</span>;
}

function Plan({ todo, isWorking }: { todo: readonly TodoItem[]; isWorking: boolean }) {
  if (!todo.length) return null;
  // A stopped run's stored plan still lists items as in progress.
  const statusOf = ({ status }: TodoItem) => (status === "in_progress" && !isWorking ? "pending" : status);
  return (
    <ol class="todo" aria-label={t("plan")}>
      {todo.map((item) => (
        <li key={item.position} data-status={statusOf(item)}>
          <span class="unseen">{tOf("todo", statusOf(item))}: </span>
          {item.description}
        </li>
      ))}
    </ol>
  );
}

function Trail({ activities, isWorking }: { activities: readonly Activity[]; isWorking: boolean }) {
  if (!activities.length) return null;
  // A thought ends with the next activity.
  const statusOf = (one: Activity) => (isWorking && one.kind === "thought" && one === activities.at(-1) ? "running" : one.status);
  return (
    <ul class="trail">
      {activities.map((activity, index) => (
        <li key={index} data-status={statusOf(activity)} class={activity.child < 0 ? "" : "of-child"}>
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
