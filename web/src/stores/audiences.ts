// Whom the signed-in person may share documents with, by names; only principals are sent.
import { computed, signal } from "@preact/signals";
import { read } from "../api/request";
import type { Audience, AudienceList } from "../api/types";
import { t } from "../words/words";
import { me } from "./session";

export const audiences = signal<readonly Audience[]>([]);
/** Names that several of them have. */
const shared = computed(() => {
  const seen = new Set<string>();
  return new Set(audiences.value.filter(({ name }) => seen.size === seen.add(name).size).map(({ name }) => name));
});

/** Reads them once; who cannot be read now is asked for when somebody looks next. */
export async function loadAudiences(): Promise<void> {
  if (!audiences.value.length) audiences.value = (await read<AudienceList>("/api/me/audiences")).audiences;
}

/** What people call it. Of groups with a name that another has, too, the id tells which. */
export function labelOf(audience: Audience): string {
  if (audience.kind !== "group") return t(`audience.${audience.kind}`, { name: audience.name });
  return shared.value.has(audience.name) ? `${audience.name} (${audience.principal})` : audience.name;
}

/** The entry of an access list in words; one that is not among the person's own stays as it is. */
export function nameOfPrincipal(principal: string): string {
  if (principal === me.value?.user_id) return t("you");
  if (principal === "*") return t("audience.everyone");
  const known = audiences.value.find((one) => one.principal === principal);
  return known ? labelOf(known) : principal;
}

/** What somebody typed, or chose by its label, as the entry of an access list. */
export function principalOf(typed: string): string {
  return audiences.value.find((one) => labelOf(one) === typed)?.principal ?? typed;
}
