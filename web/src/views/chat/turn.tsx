// One question and its answer, as it is kept or as it comes.
import { useState } from "preact/hooks";
import type { RunAnswer } from "../../api/types";
import { isOver, textOf, type RunState } from "../../model/run";
import { ask, citationsOfTurn, draft, edit, editing, type Turn, write } from "../../stores/chat";
import { attempt } from "../../stores/notices";
import { said } from "../../words/server";
import { dateTime, t } from "../../words/words";
import { IconButton } from "../../parts/button";
import { memo } from "../../parts/memo";
import { Clarification } from "./clarification";
import { Markdown } from "./markdown";
import { Progress } from "./progress";
import { Rating } from "./rating";
import { CitationList } from "./citation_list";
import { copyAnswer, saveAnswer } from "./take_away";

export const TurnView = memo(function TurnView({ turn }: { turn: Turn }) {
  return (
    <article class="turn" aria-label={t("questionAnswer")}>
      <Question turn={turn} />
      <Answer turn={turn} />
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
        <time dateTime={turn.askedAt}>{dateTime(turn.askedAt)}</time>
        <IconButton icon="edit" name={t("editResend")} onClick={change} />
      </div>
    </div>
  );
}

function Answer({ turn }: { turn: Turn }) {
  const run = turn.run?.value ?? null;
  const answer = run ? run.answer : (turn.message?.answer ?? null);
  const text = run ? textOf(run) : (answer?.text ?? "");
  const status = run?.status ?? turn.message?.status ?? "running";
  const citations = citationsOfTurn(turn);
  return (
    <div class="answer" data-status={turn.runId ? status : "sending"} data-run={turn.runId}>
      <Progress turn={turn} run={run} />
      {run?.ask && <Clarification runId={turn.runId} ask={run.ask} />}
      {text && (
        <div class={answer?.abstained ? "gap" : ""}>
          {answer?.abstained && <strong>{t("gap")}</strong>}
          <Markdown text={text} citations={citations} runId={turn.runId} />
        </div>
      )}
      <Failure turn={turn} run={run} />
      {answer && <CitationList citations={citations} runId={turn.runId} />}
      {isOver(status) && turn.runId && <Actions turn={turn} answer={answer} />}
    </div>
  );
}

function Failure({ turn, run }: { turn: Turn; run: RunState | null }) {
  const status = run?.status ?? turn.message?.status;
  if (status === "cancelled") return <p class="quiet">{t("cancelled")}</p>;
  if (status !== "failed") return null;
  const english = run?.error?.message || turn.message?.error || t("error.unknown");
  const message = said("ERRORS", run?.error?.type || turn.message?.error_type || "", english);
  const again = async () => {
    const unsent = draft.value;
    editing.value = null;
    write(turn.question);
    await ask();
    if (!draft.value) write(unsent);
  };
  return (
    <div class="failure" role="alert">
      <p>{message}</p>
      {message === english && run?.error?.hints.map((hint) => <p key={hint}>{hint}</p>)}
      <button type="button" class="button" onClick={again}>
        {t("tryAgain")}
      </button>
    </div>
  );
}

function Actions({ turn, answer }: { turn: Turn; answer: RunAnswer | null }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await copyAnswer(turn.question, answer!);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div class="actions">
      <Rating turn={turn} />
      {answer && (
        <>
          <IconButton icon={isCopied ? "check" : "copy"} name={t("copy")} onClick={copy} />
          <IconButton icon="download" name={t("export")} onClick={() => saveAnswer(turn.question, answer)} />
        </>
      )}
    </div>
  );
}
