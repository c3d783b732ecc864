// A run's reducer, by property: however its events are cut and repeated, the end is the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frame } from "../src/api/stream";
import { citationsOf, newRun, reduce, textOf, type RunState } from "../src/model/run";

/** Random numbers that are the same in each run (mulberry32). */
function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function someEvents(next: () => number, count: number): Frame[] {
  const step = () => Math.floor(next() * 3);
  const makers: (() => [string, object])[] = [
    () => ["token", { step: step(), text: `w${Math.floor(next() * 9)} ` }],
    () => ["token", { step: step(), text: "and " }],
    () => ["citation", { step: step(), n: Math.floor(next() * 9), quote: "q", verified: next() > 0.5 }],
    () => ["thought", { step: step(), text: "thinking" }],
    () => ["tool_started", { step: step(), tool: "rag_semantic_search", arguments: {} }],
    () => ["tool_result", { step: step(), tool: "rag_semantic_search", success: next() > 0.2, result_count: 3 }],
    () => ["status", { step: step(), state: ["restarted", "discarded", "done", "unheard of"][Math.floor(next() * 4)] }],
    () => ["status", { step: step(), state: "sub_agent", child: Math.floor(next() * 2), phase: "turn", proved: 1 }],
    () => ["status", { step: step(), state: "warning", text: "late" }],
    () => ["ask_user", { step: step(), question: "Which?", options: [], expires_at: "2026-01-01T00:00:00Z" }],
    () => ["status", { step: step(), state: "answered" }],
    () => ["invented", { anything: [1, 2] }],
  ];
  return Array.from({ length: count }, (_, index) => {
    const [event, data] = makers[Math.floor(next() * makers.length)]!();
    return { id: index + 1, event, data };
  });
}

const whole = (frames: Frame[]): RunState => frames.reduce(reduce, newRun("r", "t"));

test("any cut, and any repetition after it, gives what the whole gives", () => {
  for (let seed = 0; seed < 300; seed += 1) {
    const next = random(seed);
    const frames = someEvents(next, 40);
    const cut = Math.floor(next() * frames.length);
    const again = Math.floor(next() * cut);
    const resumed = frames.slice(again).reduce(reduce, whole(frames.slice(0, cut)));
    assert.deepEqual(resumed, whole(frames), `seed ${seed}`);
  }
});

test("a step that is given up, or begins again, loses its text and its citations", () => {
  for (let seed = 0; seed < 100; seed += 1) {
    const frames = someEvents(random(seed), 40);
    for (const state of ["restarted", "discarded"]) {
      const run = reduce(whole(frames), { id: 41, event: "status", data: { step: 1, state } });
      const others = frames.filter((frame) => (frame.data as { step?: number }).step !== 1);
      assert.equal(textOf(run).length, textOf(whole(others)).length);
      assert.equal(citationsOf(run).length, citationsOf(whole(others)).length);
    }
  }
});

test("a state is never changed in place", () => {
  const frames = someEvents(random(7), 60);
  let run = newRun("r", "t");
  for (const frame of frames) {
    const before = structuredClone(run);
    const after = reduce(run, frame);
    assert.deepEqual(run, before);
    run = after;
  }
});

test("the answer that was stored replaces what was streamed", () => {
  const token: Frame = { id: 1, event: "token", data: { step: 3, text: "half" } };
  const complete: Frame = { id: 2, event: "complete", data: { answer: { text: "whole", citations: [] } } };
  const run = whole([token, complete]);
  assert.equal(run.status, "completed");
  assert.equal(textOf(run), "whole");
});

test("a cancelled run is no failure", () => {
  assert.equal(whole([{ id: 1, event: "error", data: { type: "RunCancelledError" } }]).status, "cancelled");
  assert.equal(whole([{ id: 1, event: "error", data: { type: "NetworkError" } }]).status, "failed");
});

test("times and the reply to a clarifying question are those of the events", () => {
  const at = (second: number) => `2026-01-01T00:00:0${second}Z`;
  const options = [{ number: 1, title: "2023" }, { number: 2, title: "2024" }];
  const frames: [string, object][] = [
    ["status", { state: "accepted", run_id: "r", thread_id: "t" }],
    ["tool_started", { step: 1, tool: "search", at: at(1) }],
    ["tool_result", { step: 1, tool: "search", success: true, at: at(3) }],
    ["ask_user", { step: 1, question: "Which?", options }],
    ["status", { step: 1, state: "answered", choice: [2], at: at(7) }],
  ];
  const run = whole(frames.map(([event, data], index) => ({ id: index + 1, event, data })));
  assert.deepEqual([run.activities[0]!.startedAt, run.activities[0]!.endedAt], [at(1), at(3)]);
  assert.equal(run.resumedAt, at(7));
  assert.deepEqual(run.clarified, { question: "Which?", answer: "2024" });
  const words = { step: 1, state: "answered", choice: [], words: "the one from Kiel", at: at(7) };
  const other = whole([...frames.slice(0, 4), ["status", words] as [string, object]].map(([event, data], index) => ({ id: index + 1, event, data })));
  assert.equal(other.clarified!.answer, "the one from Kiel");
});
