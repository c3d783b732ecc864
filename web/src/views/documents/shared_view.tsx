// An answer that a colleague shared. Readers who can't open all its documents see only the question.
import { useEffect, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { SharedView as Shared } from "../../api/types";
import { go } from "../../routes";
import { ask, write } from "../../stores/chat";
import { wordsOf } from "../../stores/notices";
import { day, t } from "../../words/words";
import { CitationList } from "../chat/citation_list";
import { Markdown } from "../chat/markdown";

export function SharedView({ id }: { id: string }) {
  const [shared, setShared] = useState<Shared | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    setShared(null);
    read<Shared>(`/api/shares/${encodeURIComponent(id)}`).then(setShared, (failed) => setError(wordsOf(failed)));
  }, [id]);
  const askInNewThread = () => {
    write(shared!.question);
    go({});
    setTimeout(() => void ask()); // after the conversation is shown, which opens the new thread
  };
  if (error) return <p class="page" role="alert">{error}</p>;
  if (!shared) return <p class="page quiet">{t("loading")}</p>;
  const { question, shared_by: by, answer } = shared;
  return (
    <div class="page">
      <article class="turn" aria-label={t("questionAnswer")}>
        <p class="quiet">
          {by ? t("share.by", { name: by }) : t("share.byUnknown")} {t("share.until", { day: day(shared.expires_at) })}
        </p>
        <div class="question">
          <h1 class="question-text">{question}</h1>
        </div>
        {answer ? (
          <div class="answer">
            <Markdown text={answer.text} citations={answer.citations} figures={answer.figures} runId="" />
            <CitationList citations={answer.citations} runId="" />
          </div>
        ) : (
          <p>{t("share.hidden")}</p>
        )}
        <button type="button" class="button primary" onClick={askInNewThread}>
          {t("share.ask")}
        </button>
      </article>
    </div>
  );
}
