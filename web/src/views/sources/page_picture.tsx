// The picture of a page, with the quoted words marked. It can be enlarged.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { PageArea, PageView, ViewedPicture } from "../../api/types";
import { IconButton } from "../../parts/button";
import { t } from "../../words/words";
import { isWide } from "./panel_head";

const ZOOMS = [1, 1.5, 2, 3] as const;
const CLICKED = 2; // index in ZOOMS that a click zooms to

export function PagePicture({ page }: { page: PageView }) {
  const [state, setState] = useState<"coming" | "there" | "failed">("coming");
  const [zoom, setZoom] = useState(0); // index in ZOOMS
  const box = useRef<HTMLDivElement>(null);
  const picture = page.picture;
  if (!picture) return null;
  const scale = ZOOMS[zoom]!;
  const firstMark = () => box.current?.querySelector(".mark");
  const showMark = () => firstMark()?.scrollIntoView({ block: "center", inline: "start" });
  useLayoutEffect(showMark, [state, isWide.value]);
  /** Zooms to the quotation, or around a point given as shares of the picture's width and height. */
  const zoomTo = (next: number, point?: { x: number; y: number }) => {
    if (next < 0 || next >= ZOOMS.length) return;
    const frame = box.current!.firstElementChild!;
    const before = frame.getBoundingClientRect();
    setZoom(next);
    requestAnimationFrame(() => {
      if (!point && firstMark()) return showMark();
      const { x, y } = point ?? { x: 0.5, y: 0 };
      const after = frame.getBoundingClientRect();
      box.current!.scrollLeft = x * after.width - box.current!.clientWidth / 2;
      const body = box.current!.closest(".source-body");
      if (body) body.scrollTop += y * (after.height - before.height);
      firstMark()?.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
  };
  const onClick = (event: MouseEvent) => {
    if (getSelection()?.toString()) return; // the user is selecting words
    const frame = box.current!.firstElementChild!.getBoundingClientRect();
    const point = { x: (event.clientX - frame.left) / frame.width, y: (event.clientY - frame.top) / frame.height };
    zoomTo(zoom ? 0 : CLICKED, point);
  };
  const onKey = (event: KeyboardEvent) => {
    const next = { "+": zoom + 1, "=": zoom + 1, "-": zoom - 1, "0": 0, Enter: zoom ? 0 : CLICKED }[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.target !== box.current) return;
    event.preventDefault();
    zoomTo(next);
  };
  const size = picture.width_px && picture.height_px ? { width: picture.width_px, height: picture.height_px } : {};
  return (
    <div class="page-zoom">
      <div class="zoom-tools">
        <IconButton icon="zoomOut" name={t("zoomOut")} disabled={!zoom} onClick={() => zoomTo(zoom - 1)} />
        <span class="small time">{t("percent", { percent: String(scale * 100) })}</span>
        <IconButton icon="zoomIn" name={t("zoomIn")} disabled={zoom === ZOOMS.length - 1} onClick={() => zoomTo(zoom + 1)} />
      </div>
      <div class="zoom-box" ref={box} tabIndex={0} role="group" aria-label={t("zoomHelp")} onKeyDown={onKey}>
        <div class={`page-picture ${state}${zoom ? " zoomed" : ""}`} style={{ width: `${scale * 100}%` }} onClick={onClick}>
          {state === "failed" ? (
            <p class="pad quiet">{t("noPicture")}</p>
          ) : (
            <img
              src={picture.path}
              srcset={picture.width_px ? sourcesOf(picture.path, picture.width_px) : undefined}
              sizes={`(max-width: 48rem) ${100 * scale}vw, ${45 * scale}vw`}
              alt={t("pictureOfPage", { page: String(page.page_number) })}
              {...size}
              onLoad={() => setState("there")}
              onError={() => setState("failed")}
            />
          )}
          {state === "there" && picture.marks.map((mark, index) => <span key={index} class="mark" style={placeOf(mark)} />)}
          {state === "there" && <Words picture={picture} />}
        </div>
      </div>
    </div>
  );
}

/** Invisible text over the picture, for selecting and copying. Screen readers get the page's text below. */
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

const WIDTHS_PX = [320, 640, 960]; // sizes that the server renders

function sourcesOf(path: string, widthPx: number): string {
  const smaller = WIDTHS_PX.filter((width) => width < widthPx).map((width) => `${path}?width=${width} ${width}w`);
  return [...smaller, `${path} ${widthPx}w`].join(", ");
}
