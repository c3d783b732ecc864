// Links from a page: neighbouring pages, the whole text, the file and its origin.
import { IconButton } from "../../parts/button";
import { t } from "../../words/words";

export function Pages({ page, count, onGo }: { page: number; count: number; onGo(page: number): void }) {
  return (
    <div class="pages">
      <IconButton icon="back" name={t("previousPage")} disabled={page <= 1} onClick={() => onGo(page - 1)} />
      <span class="small">{t("pageOf", { page: String(page), count })}</span>
      <IconButton icon="next" name={t("nextPage")} disabled={page >= count} onClick={() => onGo(page + 1)} />
    </div>
  );
}

export function Links({ docId, contentUrl, sourceUrl }: { docId: string; contentUrl: string; sourceUrl: string | null }) {
  return (
    <p class="links small">
      <a href={`/api/documents/${docId}/readable`} target="_blank" rel="noopener">
        {t("wholeText")}
      </a>
      <a href={contentUrl} target="_blank" rel="noopener">
        {t("file")}
      </a>
      {sourceUrl && <Origin url={sourceUrl} name={t("origin")} />}
    </p>
  );
}

export function Origin({ url, name }: { url: string; name: string }) {
  if (!/^https?:/.test(url)) return null;
  return (
    <a class="small" href={url} target="_blank" rel="noopener noreferrer">
      {name}
    </a>
  );
}
