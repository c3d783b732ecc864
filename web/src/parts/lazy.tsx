// A component whose code is loaded when it is first shown.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { t } from "../words/words";

const RELOADED = "groundwork.reloaded"; // per tab: after a deployment, an open page requests files that no longer exist

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  const loaded = signal<ComponentType<Props> | null>(null);
  let isLoading = false;
  const start = async () => {
    isLoading = true;
    try {
      loaded.value = await load();
      sessionStorage.removeItem(RELOADED);
    } catch (error) {
      isLoading = false;
      if (sessionStorage.getItem(RELOADED)) throw error;
      sessionStorage.setItem(RELOADED, "yes");
      location.reload();
    }
  };
  return (props: Props) => {
    const View = loaded.value;
    if (View) return <View {...props} />;
    if (!isLoading) void start();
    return <p class="page quiet">{t("loading")}</p>;
  };
}
