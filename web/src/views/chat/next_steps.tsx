// Next steps if the documents do not contain an answer: view the closest passages, search elsewhere or more
// thoroughly, or add a document.
import { useEffect, useState } from "preact/hooks";
import { change } from "../../api/request";
import type { SearchResults } from "../../api/types";
import { go } from "../../routes";
import { askAgain, isDeep, NO_SCOPE, scope, type Turn } from "../../stores/chat";
import { useLabels } from "../../stores/namesakes";
import { wordsOf } from "../../stores/notices";
import { t } from "../../words/words";
import { openPage } from "../sources/page_panel";
import { captionOf } from "./captions";
import { Excerpt } from "./excerpt";

const CLOSEST = 3;

export function NextSteps({ turn }: { turn: Turn }) {
  const { agent, project, documents } = scope.value;
  const isLimited = agent !== "" || project !== "" || documents.length > 0;
  const widen = () => {
    scope.value = NO_SCOPE; // also resets the agent
    void askAgain(turn);
  };
  const deepen = () => {
    isDeep.value = true;
    void askAgain(turn);
  };
  return (
    <div class="next-steps">
      <Closest question={turn.question} />
      <div class="button-row">
        {isLimited && (
          <button type="button" class="button" onClick={widen}>
            {t("gap.wider")}
          </button>
        )}
        {!isDeep.value && (
          <button type="button" class="button" onClick={deepen}>
            {t("gap.deeper")}
          </button>
        )}
        <button type="button" class="button" onClick={() => go({ view: "documents" })}>
          {t("gap.add")}
        </button>
      </div>
    </div>
  );
}

function Closest({ question }: { question: string }) {
  const [found, setFound] = useState<SearchResults["results"] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const body = { query: question.slice(0, 8000), top_k: CLOSEST };
    change<SearchResults>("POST", "/api/search", body).then(
      ({ results }) => setFound(results),
      (failed) => setError(wordsOf(failed)),
    );
  }, [question]);
  const labels = useLabels(found ?? []);
  if (error) return <p class="quiet small">{error}</p>;
  if (!found?.length) return null;
  return (
    <section class="closest" aria-label={t("gap.closest")}>
      <h3>{t("gap.closest")}</h3>
      <ul>
        {found.map((hit) => (
          <li key={hit.block_id} class="passage">
            <button type="button" class="link-button" onClick={() => openPage(hit.doc_id, hit.page_number)}>
              <bdi>{hit.filename}</bdi>
              {labels.has(hit.doc_id) && ` (${labels.get(hit.doc_id)})`}
              {hit.page_number !== null && `, ${t("page", { page: String(hit.page_number) })}`}
            </button>
            <Excerpt passage={"content" in hit ? hit.content : captionOf(hit.image_caption ?? "")} />
          </li>
        ))}
      </ul>
    </section>
  );
}
