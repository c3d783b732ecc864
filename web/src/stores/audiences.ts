// People and groups that documents can be shared with, by name. Requests contain only principals.
import { computed, signal } from "@preact/signals";
import { read } from "../api/request";
import type { Audience, AudienceList } from "../api/types";
import { t } from "../words/words";
import { me } from "./session";

/** The user, their groups, department and organisation, and everyone. */
export const ownAudiences = signal<readonly Audience[]>([]);
/** All principals whose names are known, by principal. */
export const audiences = signal<Readonly<Record<string, Audience>>>({});
const MOST = 50; // limit of the API

/** Names that occur more than once among the user's groups. */
const shared = computed(() => {
  const seen = new Set<string>();
  return new Set(ownAudiences.value.filter(({ name }) => seen.size === seen.add(name).size).map(({ name }) => name));
});

function note(found: readonly Audience[]): void {
  audiences.value = { ...audiences.value, ...Object.fromEntries(found.map((one) => [one.principal, one])) };
}

let loading: Promise<void> | null = null;

/** Loads the user's own audiences once. After a failure, the next call tries again. */
export async function loadAudiences(): Promise<void> {
  loading ??= readOwn();
  return loading;
}

async function readOwn(): Promise<void> {
  try {
    ownAudiences.value = (await read<AudienceList>("/api/me/audiences")).audiences;
    note(ownAudiences.value);
  } catch (error) {
    loading = null;
    throw error;
  }
}

/** Loads the unknown names of access list entries. */
export async function loadNames(principals: readonly string[]): Promise<void> {
  await loadAudiences();
  const unknown = principals.filter((one) => one && one !== "*" && !one.startsWith("org:") && !audiences.value[one]).slice(0, MOST);
  if (!unknown.length) return;
  const query = new URLSearchParams(unknown.map((one) => ["principal", one]));
  note((await read<AudienceList>(`/api/me/audiences?${query}`)).audiences);
}

/** Returns people and groups with a word in their name that starts with `words`. */
export async function searchDirectory(words: string): Promise<readonly Audience[]> {
  const found = (await read<AudienceList>(`/api/me/audiences?q=${encodeURIComponent(words)}`)).audiences;
  note(found);
  return found;
}

/** Returns the display name. If several of the user's groups share a name, the id is added. */
export function labelOf(audience: Audience): string {
  if (audience.kind === "person" && audience.principal === me.value?.user_id) return t("audience.person");
  const isOwn = ownAudiences.value.some(({ kind, principal }) => kind === audience.kind && principal === audience.principal);
  if (isOwn && audience.kind !== "group") return t(`audience.${audience.kind}`, { name: audience.name });
  return shared.value.has(audience.name) ? `${audience.name} (${audience.principal})` : audience.name;
}

/** Returns the display name of an access list entry; unknown principals are returned unchanged. */
export function nameOfPrincipal(principal: string): string {
  if (principal === me.value?.user_id) return t("you");
  if (principal === "*") return t("audience.everyone");
  const known = audiences.value[principal];
  return known ? labelOf(known) : principal;
}
