// The picture of a page, with the quoted words marked where they stand.
import { useRef, useState } from "preact/hooks";
import type { PageArea, PageView, ViewedPicture } from "../../api/types";
import { t } from "../../words/words";

export function PagePicture({ page }: { page: PageView }) {
  const [state, setState] = useState<"coming" | "there" | "failed">("coming");
  const frame = useRef<HTMLDivElement>(null);
  const picture = page.picture;
  if (!picture) return null;
  const showMark = () => {
    setState("there");
    frame.current?.querySelector(".mark")?.scrollIntoView({ block: "center" });
  };
  const size = picture.width_px && picture.height_px ? { width: picture.width_px, height: picture.height_px } : {};
  return (
    <div class={`page-picture ${state}`} ref={frame}>
      {state === "failed" ? (
        <p class="pad quiet">{t("noPicture")}</p>
      ) : (
        <img
          src={picture.path}
          srcset={picture.width_px ? sourcesOf(picture.path, picture.width_px) : undefined}
          sizes="(max-width: 48rem) 100vw, 45vw"
          alt={t("pictureOfPage", { page: String(page.page_number) })}
          {...size}
          onLoad={showMark}
          onError={() => setState("failed")}
        />
      )}
      {state === "there" &&
        picture.marks.map((mark, index) => (
          <span key={index} class="mark" style={placeOf(mark)} />
        ))}
      {state === "there" && <Words picture={picture} />}
    </div>
  );
}

/** The words over the picture, unseen, to be selected and copied. Readers of screens have the page's text below. */
function Words({ picture }: { picture: ViewedPicture }) {
  const ratio = (picture.height_px ?? 0) / (picture.width_px || 1);
  return (
    <div class="page-words" aria-hidden="true">
      {picture.words.map(({ text, area }, index) => (
        <span key={index} style={{ ...placeOf(area), fontSize: `${((area.bottom - area.top) * ratio * 100).toFixed(2)}cqw` }}>
          {`${text} `}
        </span>
      ))}
    </div>
  );
}

function placeOf({ left, top, right, bottom }: PageArea) {
  const percent = (share: number) => `${(share * 100).toFixed(2)}%`;
  return { left: percent(left), top: percent(top), width: percent(right - left), height: percent(bottom - top) };
}

const WIDTHS_PX = [320, 640, 960]; // that the server makes

function sourcesOf(path: string, widthPx: number): string {
  const smaller = WIDTHS_PX.filter((width) => width < widthPx).map((width) => `${path}?width=${width} ${width}w`);
  return [...smaller, `${path} ${widthPx}w`].join(", ");
}
