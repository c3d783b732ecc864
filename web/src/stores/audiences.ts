// Whom documents may be shared with, by names; only principals are sent.
import { computed, signal } from "@preact/signals";
import { read } from "../api/request";
import type { Audience, AudienceList } from "../api/types";
import { t } from "../words/words";
import { me } from "./session";

/** The person, their groups, department and organisation, and everyone. */
export const ownAudiences = signal<readonly Audience[]>([]);
/** Everybody whose name is known by now, by principal. */
export const audiences = signal<Readonly<Record<string, Audience>>>({});
const MOST = 50; // as the API takes

/** Names that several of a person's own groups have. */
const shared = computed(() => {
  const seen = new Set<string>();
  return new Set(ownAudiences.value.filter(({ name }) => seen.size === seen.add(name).size).map(({ name }) => name));
});

function note(found: readonly Audience[]): void {
  audiences.value = { ...audiences.value, ...Object.fromEntries(found.map((one) => [one.principal, one])) };
}

/** Reads the person's own once; who cannot be read now is asked for when somebody looks next. */
export async function loadAudiences(): Promise<void> {
  if (ownAudiences.value.length) return;
  ownAudiences.value = (await read<AudienceList>("/api/me/audiences")).audiences;
  note(ownAudiences.value);
}

/** Reads the names of entries of access lists that are not known yet. */
export async function loadNames(principals: readonly string[]): Promise<void> {
  await loadAudiences();
  const unknown = principals.filter((one) => one && one !== "*" && !one.startsWith("org:") && !audiences.value[one]).slice(0, MOST);
  if (!unknown.length) return;
  const query = new URLSearchParams(unknown.map((one) => ["principal", one]));
  note((await read<AudienceList>(`/api/me/audiences?${query}`)).audiences);
}

/** People and groups whose name has a word that begins so. */
export async function searchDirectory(words: string): Promise<readonly Audience[]> {
  const found = (await read<AudienceList>(`/api/me/audiences?q=${encodeURIComponent(words)}`)).audiences;
  note(found);
  return found;
}

/** What people call it. Of groups with a name that another has, too, the id tells which. */
export function labelOf(audience: Audience): string {
  if (audience.kind === "person" && audience.principal === me.value?.user_id) return t("audience.person");
  const isOwn = ownAudiences.value.some(({ kind, principal }) => kind === audience.kind && principal === audience.principal);
  if (isOwn && audience.kind !== "group") return t(`audience.${audience.kind}`, { name: audience.name });
  return shared.value.has(audience.name) ? `${audience.name} (${audience.principal})` : audience.name;
}

/** The entry of an access list in words; an unknown one stays as it is. */
export function nameOfPrincipal(principal: string): string {
  if (principal === me.value?.user_id) return t("you");
  if (principal === "*") return t("audience.everyone");
  const known = audiences.value[principal];
  return known ? labelOf(known) : principal;
}
