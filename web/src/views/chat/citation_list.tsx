// The cited documents of an answer with their citations.
import type { Citation } from "../../api/types";
import { Icon } from "../../parts/icons";
import { useLabels } from "../../stores/namesakes";
import { isGone } from "../../stores/thread_files";
import { t } from "../../words/words";
import { Chip, isOutside, isProved, kindOf } from "./chip";

interface Props {
  citations: readonly Citation[];
  runId: string;
}

export function CitationList({ citations, runId }: Props) {
  const labels = useLabels(citations);
  if (!citations.length) return null;
  const byDocument = new Map<string, Citation[]>();
  for (const citation of citations) {
    const id = citation.doc_id || citation.url; // web pages have no document id
    byDocument.set(id, [...(byDocument.get(id) ?? []), citation]);
  }
  const unproved = citations.filter((citation) => !isProved(citation)).length;
  return (
    <div class="sources" role="group" aria-label={t("sources")}>
      <ul>
        {[...byDocument].map(([id, cited]) => (
          <li key={id}>
            <Icon name={isOutside(cited[0]!) ? "external" : "book"} />
            <bdi>{cited[0]!.filename}</bdi>
            {labels.has(id) && <span class="quiet">{labels.get(id)}</span>}
            {kindOf(cited[0]!) && <span class="tag">{kindOf(cited[0]!)}</span>}
            {runId && isGone(cited[0]!.doc_id) && <span class="tag">{t("files.gone")}</span>}
            <span class="chips">
              {cited.map((citation) => (
                <Chip key={citation.n} citation={citation} runId={runId} label={labels.get(id)} />
              ))}
            </span>
          </li>
        ))}
      </ul>
      <p class="quiet small">
        {unproved
          ? t("proof.some", { count: unproved })
          : citations.every((citation) => citation.verified) && t("proof.all", { count: citations.length })}
      </p>
    </div>
  );
}
