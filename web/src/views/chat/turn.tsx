// A question and its answer, stored or live.
import { computed } from "@preact/signals";
import { useState } from "preact/hooks";
import type { RunAnswer } from "../../api/types";
import { isOver, textOf, type RunState } from "../../model/run";
import { askAgain, citationsOfTurn, edit, page, shown, waitingTurn, workingTurn, type Turn } from "../../stores/chat";
import { attempt } from "../../stores/notices";
import { translationOf } from "../../words/server";
import { dateTime, t } from "../../words/words";
import { site } from "../../stores/session";
import { IconButton } from "../../parts/button";
import { lazy } from "../../parts/lazy";
import { memo } from "../../parts/memo";
import { Clarification, Clarified } from "./clarification";
import { Markdown } from "./markdown";
import { NextQuestions } from "./next_questions";
import { NextSteps } from "./next_steps";
import { Progress } from "./progress";
import { Rating } from "./rating";
import { CitationList } from "./citation_list";
import { copyAnswer, saveAnswer } from "./take_away";

const ShareDialog = lazy(async () => (await import("../documents/documents")).ShareDialog);

/** Position of the displayed version among those of its question, counted from 0. */
interface Version {
  at: number;
  count: number;
}

export const TurnView = memo(function TurnView({ turn, at, count }: { turn: Turn } & Version) {
  return (
    <article class="turn" aria-label={t("questionAnswer")}>
      <Question turn={turn} />
      <Answer turn={turn} at={at} count={count} />
    </article>
  );
});

function Question({ turn }: { turn: Turn }) {
  const change = () => {
    void attempt(() => edit(turn));
    document.getElementById("question")?.focus();
  };
  return (
    <div class="question">
      <h2 class="question-text">{turn.question}</h2>
      <div class="question-more">
        <IconButton icon="edit" name={t("editResend")} onClick={change} />
        <time dateTime={turn.askedAt}>{dateTime(turn.askedAt)}</time>
      </div>
    </div>
  );
}

const NO_FIGURES: RunAnswer["figures"] = [];

function Answer({ turn, at, count }: { turn: Turn } & Version) {
  const run = turn.run?.value ?? null;
  const state = run ?? turn.record.value; // from events
  const answer = run ? run.answer : (turn.message?.answer ?? null);
  const text = run ? textOf(run) : (answer?.text ?? (state ? textOf(state) : ""));
  const status = run?.status ?? turn.message?.status ?? "running";
  const citations = citationsOfTurn(turn);
  const clarified = state?.clarified ?? turn.message?.clarification;
  return (
    <div class="answer" data-status={turn.runId ? status : "sending"} data-run={turn.runId}>
      <Progress turn={turn} run={run} />
      {run?.ask && <Clarification runId={turn.runId} ask={run.ask} />}
      {clarified && !run?.ask && <Clarified question={clarified.question} answer={clarified.answer} />}
      {text && (
        <div class={answer?.abstained ? "gap" : status === "cancelled" ? "stopped" : ""}>
          {answer?.abstained && <strong>{t("gap")}</strong>}
          <Markdown text={text} citations={citations} figures={answer?.figures ?? NO_FIGURES} runId={turn.runId} />
        </div>
      )}
      {answer?.abstained && isLast(turn) && <NextSteps turn={turn} />}
      <Failure turn={turn} state={state} status={status} hasText={text !== ""} />
      {citations.length > 0 && isOver(status) && <CitationList citations={citations} runId={turn.runId} />}
      {isOver(status) && turn.runId && <Actions turn={turn} answer={answer} at={at} count={count} />}
      {answer?.next_questions?.length && isLast(turn) ? <NextQuestions questions={answer.next_questions} /> : null}
    </div>
  );
}

interface FailureProps {
  turn: Turn;
  state: RunState | null;
  status: string;
  hasText: boolean;
}

function Failure({ turn, state, status, hasText }: FailureProps) {
  const again = canAsk.value && (
    <button type="button" class="button" onClick={() => askAgain(turn)}>
      {t(status === "cancelled" ? "askAgain" : "tryAgain")}
    </button>
  );
  if (status === "cancelled")
    return (
      <div class="button-row">
        <p class="quiet">{t(hasText ? "cancelled" : "announce.cancelled")}</p>
        {again}
      </div>
    );
  if (status !== "failed") return null;
  const english = state?.error?.message || turn.message?.error || t("error.unknown");
  const message = translationOf("ERRORS", state?.error?.type || turn.message?.error_type || "", english);
  return (
    <div class="failure" role="alert">
      <p>{message}</p>
      {message === english && state?.error?.hints.map((hint) => <p key={hint}>{hint}</p>)}
      {again}
    </div>
  );
}

/** Whether the turn is the last one on display. */
const isLast = (turn: Turn) => shown.value.at(-1)?.turn === turn;

/** Whether no run is active or waits for a reply. */
const canAsk = computed(() => !workingTurn.value && !waitingTurn.value);

function Actions({ turn, answer, at, count }: { turn: Turn; answer: RunAnswer | null } & Version) {
  const [isCopied, setCopied] = useState(false);
  const [isSharing, setSharing] = useState(false);
  const copy = async () => {
    if (!(await attempt(() => copyAnswer(turn.question, answer!)))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div class="actions">
      {answer && <Rating turn={turn} />}
      {answer && canAsk.value && <IconButton icon="again" name={t("askAgain")} onClick={() => askAgain(turn)} />}
      {answer && (
        <>
          <IconButton icon={isCopied ? "check" : "copy"} name={t("copy")} onClick={copy} />
          {site.value.sharing && <IconButton icon="share" name={t("share")} onClick={() => setSharing(true)} />}
          {isSharing && <ShareDialog runId={turn.runId} onClose={() => setSharing(false)} />}
          <IconButton icon="download" name={t("export")} onClick={() => attempt(() => saveAnswer(turn.question, answer))} />
        </>
      )}
      {count > 1 && <Pager turn={turn} at={at} count={count} />}
    </div>
  );
}

function Pager({ turn, at, count }: { turn: Turn } & Version) {
  const choose = (other: number) => page(shown.value.find((one) => one.turn === turn)!, other);
  return (
    <span class="pager" role="group" aria-label={t("versions")}>
      <IconButton icon="back" name={t("previousVersion")} disabled={at === 0} onClick={() => choose(at - 1)} />
      <span class="small">{t("versionOf", { at: at + 1, count: String(count) })}</span>
      <IconButton icon="next" name={t("nextVersion")} disabled={at === count - 1} onClick={() => choose(at + 1)} />
    </span>
  );
}
