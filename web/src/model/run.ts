// Folds a run's events into its state. Pure: state and event in, state out. Replaying the events in several parts
// gives the same state as replaying them at once. Unknown events and citation kinds are ignored.
import type { Frame } from "../api/stream";
import type { Citation, Clarification, RunAnswer, RunStatus, TodoItem } from "../api/types";

/** Text of one step. It is discarded if the step is abandoned or restarted. */
export interface StepText {
  step: number;
  text: string;
  citations: readonly Citation[];
}

export interface Activity {
  step: number;
  /** Number of the sub-agent; -1 = the agent itself. */
  child: number;
  kind: "thought" | "tool";
  text: string;
  /** Code of a predefined thought; empty = text written by a model. */
  code: string;
  counted: { passages: number; documents: number; names: string };
  tool: string;
  status: "running" | "done" | "failed";
  /** null if not applicable. */
  found: number | null;
  /** ISO times; empty = unknown. */
  startedAt: string;
  endedAt: string;
}

export interface Child {
  key: string;
  step: number;
  child: number;
  profile: string;
  phase: string;
  turn: number;
  passages: number;
  findings: number;
  proved: number;
}

export interface RunState {
  runId: string;
  threadId: string;
  status: RunStatus;
  lastId: number;
  steps: readonly StepText[];
  todo: readonly TodoItem[];
  activities: readonly Activity[];
  children: readonly Child[];
  /** When the clock resumed after a clarification or a crash; empty = it never stopped. */
  resumedAt: string;
  ask: Clarification | null;
  /** The last answered clarification with the reply; empty reply = the user did not reply in time. */
  clarified: { question: string; answer: string } | null;
  warnings: readonly string[];
  answer: RunAnswer | null;
  error: { type: string; message: string; hints: readonly string[] } | null;
}

interface EventData {
  step?: number;
  child?: number;
  profile?: string;
  state?: string;
  text?: string;
  tool?: string;
  success?: boolean;
  result_count?: number;
  todo?: TodoItem[];
  phase?: string;
  turn?: number;
  passages?: number;
  findings?: number;
  proved?: number;
  at?: string;
  code?: string;
  choice?: number[];
  words?: string;
  documents?: number;
  filenames?: string[];
  run_id?: string;
  thread_id?: string;
  answer?: RunAnswer;
  type?: string;
  message?: string;
  hints?: string[];
}

export function newRun(runId: string, threadId: string): RunState {
  return {
    runId,
    threadId,
    status: "running",
    lastId: 0,
    steps: [],
    todo: [],
    activities: [],
    children: [],
    resumedAt: "",
    ask: null,
    clarified: null,
    warnings: [],
    answer: null,
    error: null,
  };
}

export function isOver(status: RunStatus): boolean {
  return status !== "running" && status !== "waiting";
}

/** Returns the text of the answer received so far. */
export function textOf(run: RunState): string {
  return run.answer ? run.answer.text : run.steps.map((step) => step.text).join("");
}

export function citationsOf(run: RunState): readonly Citation[] {
  return run.answer ? run.answer.citations : run.steps.flatMap((step) => step.citations);
}

export function reduce(run: RunState, frame: Frame): RunState {
  if (frame.id <= run.lastId) return run;
  const data = (frame.data ?? {}) as EventData;
  const next = { ...run, lastId: frame.id };
  const apply = EVENTS[frame.event];
  return apply ? apply(next, data) : next;
}

const EVENTS: Record<string, (run: RunState, data: EventData) => RunState> = {
  status: (run, data) => (STATES[data.state ?? ""] ?? progress)(run, data),
  thought: (run, data) => begin(run, data, "thought", data.text ?? "", ""),
  tool_started: (run, data) => begin(run, data, "tool", "", data.tool ?? ""),
  tool_result: endTool,
  token: (run, data) => withStep(run, data, (step) => ({ ...step, text: step.text + (data.text ?? "") })),
  citation: (run, data) =>
    withStep(run, data, (step) => ({ ...step, citations: [...step.citations, data as unknown as Citation] })),
  ask_user: (run, data) => ({ ...run, status: "waiting", ask: data as unknown as Clarification }),
  complete: (run, data) => ({
    ...run,
    status: "completed",
    ask: null,
    answer: data.answer ?? null,
    todo: data.todo ?? run.todo,
  }),
  error: (run, data) => ({
    ...run,
    status: data.type === "RunCancelledError" ? "cancelled" : "failed",
    ask: null,
    error: { type: data.type ?? "", message: data.message ?? "", hints: data.hints ?? [] },
  }),
};

const STATES: Record<string, (run: RunState, data: EventData) => RunState> = {
  accepted: (run, data) => ({
    ...run,
    runId: data.run_id ?? run.runId,
    threadId: data.thread_id ?? run.threadId,
  }),
  resumed: (run, data) => ({ ...run, resumedAt: data.at ?? run.resumedAt }),
  restarted: drop,
  discarded: drop,
  answered: (run, data) => ({
    ...run,
    status: "running",
    ask: null,
    clarified: run.ask && { question: run.ask.question, answer: data.words ?? labelsOf(run.ask, data.choice ?? []) },
    resumedAt: data.at ?? run.resumedAt,
  }),
  warning: (run, data) => ({ ...run, warnings: [...run.warnings, data.text ?? ""] }),
  sub_agent: (run, data) => {
    const key = `${data.step}-${data.child}`;
    const before = run.children.find((child) => child.key === key);
    const after: Child = {
      key,
      step: data.step ?? 0,
      child: data.child ?? 0,
      profile: data.profile ?? "",
      phase: data.phase ?? "",
      turn: data.turn ?? before?.turn ?? 0,
      passages: data.passages ?? before?.passages ?? 0,
      findings: data.findings ?? before?.findings ?? 0,
      proved: data.proved ?? before?.proved ?? 0,
    };
    const children = before ? run.children.map((child) => (child === before ? after : child)) : [...run.children, after];
    return { ...run, children };
  },
};

/** Returns title and filename of the options with these numbers, because titles may repeat. */
export function labelsOf(ask: Clarification, numbers: readonly number[]): string {
  const chosen = ask.options.filter((option) => numbers.includes(option.number));
  return chosen.map(({ title, filename }) => (title && filename ? `${title} (${filename})` : title || filename)).join(", ");
}

export function hasEnded(phase?: string): boolean {
  return phase === "ended" || phase === "failed";
}

function progress(run: RunState, data: EventData): RunState {
  return data.todo ? { ...run, todo: data.todo } : run;
}

function drop(run: RunState, data: EventData): RunState {
  return progress({ ...run, steps: run.steps.filter((step) => step.step !== data.step) }, data);
}

function begin(run: RunState, data: EventData, kind: Activity["kind"], text: string, tool: string): RunState {
  const activity: Activity = {
    step: data.step ?? 0,
    child: data.child ?? -1,
    kind,
    text,
    code: data.code ?? "",
    counted: { passages: data.passages ?? 0, documents: data.documents ?? 0, names: (data.filenames ?? []).join(", ") },
    tool,
    status: kind === "tool" ? "running" : "done",
    found: null,
    startedAt: data.at ?? "",
    endedAt: "",
  };
  return { ...run, activities: [...run.activities, activity] };
}

function endTool(run: RunState, data: EventData): RunState {
  const isIt = (one: Activity) =>
    one.status === "running" && one.tool === data.tool && one.step === data.step && one.child === (data.child ?? -1);
  const index = run.activities.findIndex(isIt);
  if (index < 0) return run;
  const ended: Activity = {
    ...run.activities[index]!,
    status: data.success === false ? "failed" : "done",
    found: data.result_count ?? null,
    endedAt: data.at ?? "",
  };
  return { ...run, activities: run.activities.with(index, ended) };
}

function withStep(run: RunState, data: EventData, change: (step: StepText) => StepText): RunState {
  const number = data.step ?? 0;
  const index = run.steps.findIndex((step) => step.step === number);
  if (index < 0) return { ...run, steps: [...run.steps, change({ step: number, text: "", citations: [] })] };
  return { ...run, steps: run.steps.with(index, change(run.steps[index]!)) };
}
