// Icons, drawn as paths on a 24 px grid. Each one accompanies a label or belongs to a named button.
const PATHS = {
  add: "M12 5v14M5 12h14",
  again: "M19 12a7 7 0 11-2-5M19 3v4.500h-4.500",
  back: "M15 5l-7 7 7 7",
  book: "M7 3h7l5 5v13H7zM14 3v5h5",
  check: "M5 12.5l4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  deep: "M12 3v6m0 6v6M3 12h6m6 0h6M6 6l3 3m6 6l3 3M18 6l-3 3m-6 6l-3 3",
  documents: "M7 3h7l5 5v13H7zM14 3v5h5M10 13h6M10 17h6",
  down: "M7 4v10h3l3 6c1.7 0 2.4-1 2-3l-.6-3H20V7l-2-3H7zM4 4v10",
  download: "M12 4v11m0 0l-4.5-4.5M12 15l4.5-4.5M5 20h14",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  external: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  menu: "M4 7h16M4 12h16M4 17h16",
  more: "M5.5 12h.01M12 12h.01M18.5 12h.01",
  next: "M9 5l7 7-7 7",
  person: "M12 12a4 4 0 100-8 4 4 0 000 8zM4 20c1-4 4.500-5 8-5s7 1 8 5",
  scope: "M4 6h16M7 12h10M10 18h4",
  search: "M11 18a7 7 0 100-14 7 7 0 000 14zM16.200 16.200L21 21",
  send: "M12 19V5m0 0l-6 6m6-6l6 6",
  settings: "M4 8h9m5 0h2M4 16h2m5 0h9M15.500 10.500a2.500 2.500 0 100-5 2.500 2.500 0 000 5zM8.500 18.500a2.500 2.500 0 100-5 2.500 2.500 0 000 5z",
  share: "M12 15V4m0 0L8 8m4-4l4 4M6 12v8h12v-8",
  stop: "M7 7h10v10H7z",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  up: "M7 20V10h3l3-6c1.700 0 2.400 1 2 3l-.6 3H20v7l-2 3H7zM4 20V10",
  upload: "M12 16V5m0 0L7.500 9.500M12 5l4.500 4.500M5 20h14",
  wide: "M9 6l-6 6 6 6M15 6l6 6-6 6",
  zoomIn: "M11 18a7 7 0 100-14 7 7 0 000 14zM16.200 16.200L21 21M8 11h6M11 8v6",
  zoomOut: "M11 18a7 7 0 100-14 7 7 0 000 14zM16.200 16.200L21 21M8 11h6",
  warning: "M12 4l9 16H3zM12 10v4m0 3v.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
