// A picture that reserves its space before it has loaded, so that the text below doesn't move.
import { useState } from "preact/hooks";

interface Size {
  width: number;
  height: number;
}

/** Sizes in pixels of loaded pictures, by path. An answer renders its pictures again when it ends. */
const sizes = new Map<string, Size>();

export function Picture({ path, alt, size: given }: { path: string; alt: string; size?: Size }) {
  const [size, setSize] = useState<Size | null | undefined>(given ?? sizes.get(path)); // null = failed
  const onLoad = ({ currentTarget: { naturalWidth: width, naturalHeight: height } }: { currentTarget: HTMLImageElement }) => {
    sizes.set(path, { width, height });
    setSize({ width, height });
  };
  return (
    <img
      class={size ? "sized" : size === undefined ? "coming" : ""}
      style={size ? { "--w": size.width, "--h": size.height } : {}}
      src={path}
      alt={alt}
      loading="lazy"
      decoding="async"
      onLoad={onLoad}
      onError={() => setSize(null)}
    />
  );
}
