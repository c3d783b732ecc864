// The text of an answer that may still grow: settled blocks are neither lexed nor rendered again.
import { useMemo, useRef } from "preact/hooks";
import type { AnswerFigure, Citation } from "../../api/types";
import { lexBlocks, NO_BLOCKS } from "../../text/blocks";
import { docIdOf } from "../../text/citations";
import { Block, type Context } from "../../text/render";
import { useLabels } from "../../stores/namesakes";
import { t } from "../../words/words";
import { openPage } from "../sources/page_panel";
import { captionOf } from "./captions";
import { Chip } from "./chip";

interface Props {
  text: string;
  citations: readonly Citation[];
  figures: readonly AnswerFigure[];
  runId: string;
}

export function Markdown({ text, citations, figures, runId }: Props) {
  const kept = useRef(NO_BLOCKS);
  const blocks = useMemo(() => (kept.current = lexBlocks(kept.current, text)), [text]);
  const labels = useLabels(citations);
  const context = useMemo<Context>(() => {
    const sources = [...figures, ...citations];
    const byNumber = new Map(citations.map((citation) => [citation.n, citation]));
    return {
      known: new Set(byNumber.keys()),
      cite: (n) => <Chip citation={byNumber.get(n)!} runId={runId} label={labels.get(byNumber.get(n)!.doc_id)} />,
      place: (file, page) => <Place file={file} page={page} docId={docIdOf(sources, file, page)} />,
      open: (path) => {
        const figure = figures.find((one) => one.path === path);
        return figure ? () => openPage(figure.doc_id, figure.page_number) : null;
      },
      caption: captionOf,
    };
  }, [citations.length, figures, runId, [...labels].join()]);
  return (
    <div class="markdown">
      {[...blocks.settled, ...blocks.tail].map((token, index) => (
        <Block key={index} token={token} context={context} />
      ))}
    </div>
  );
}

/** A file and its page, with a link if the document is known. */
function Place({ file, page, docId }: { file: string; page: number | null; docId?: string }) {
  const name = [file, page !== null && t("page", { page: String(page) })].filter(Boolean).join(", ");
  if (!docId) return <span class="place">{name}</span>;
  return (
    <button type="button" class="link-button place" onClick={() => openPage(docId, page)}>
      {name}
    </button>
  );
}
