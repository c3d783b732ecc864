// An answer's text, which may still grow: blocks that no longer change are neither lexed nor rendered again.
import { useMemo, useRef } from "preact/hooks";
import type { Citation } from "../../api/types";
import { lexBlocks, NO_BLOCKS } from "../../text/blocks";
import { Block, type Context } from "../../text/render";
import { t } from "../../words/words";
import { Chip } from "./chip";

export function Markdown({ text, citations, runId }: { text: string; citations: readonly Citation[]; runId: string }) {
  const kept = useRef(NO_BLOCKS);
  const blocks = useMemo(() => (kept.current = lexBlocks(kept.current, text)), [text]);
  const context = useMemo<Context>(() => {
    const byNumber = new Map(citations.map((citation) => [citation.n, citation]));
    return {
      known: new Set(byNumber.keys()),
      cite: (n) => <Chip citation={byNumber.get(n)!} runId={runId} />,
      page: (page) => t("page", { page }),
    };
  }, [citations.length, runId]);
  return (
    <div class="markdown">
      {[...blocks.settled, ...blocks.tail].map((token, index) => (
        <Block key={index} token={token} context={context} />
      ))}
    </div>
  );
}
