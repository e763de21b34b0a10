import { type Catalog } from '../../keys/permissions/catalog.ts';
import type { Choice, Offer } from './offer.ts';
import type { Choices } from './reply.ts';

/** What takes time to find out, and is asked only where it is needed. */
export interface Sources {
  /** Names of keys that begin with a text. */
  names(start: string): Promise<readonly string[]>;
  catalog(): Promise<Catalog>;
}

/** The choices of an offer, or what kind of path the shell is to complete. */
export async function resolveOffer(offer: Offer, sources: Sources): Promise<'files' | 'folders' | Choices> {
  const { head, typed, kind } = offer;
  if (kind === 'files' || kind === 'folders') return kind;
  if (kind === 'names') return { head, choices: textChoices(await sources.names(typed)) };
  if (kind === 'roles') return { head, choices: textChoices(startingWith(typed, (await sources.catalog()).roles)) };
  if (kind === 'permissions') return permissionChoices(offer, await sources.catalog());
  if ('choices' in kind) return { head, choices: kind.choices.filter(({ text }) => text.startsWith(typed)) };
  return { head, choices: textChoices(startingWith(typed, kind)) };
}

/** A resource with its colon or, after that, an action. */
function permissionChoices({ head, typed }: Offer, { resources, actions }: Catalog): Choices {
  const colon = typed.indexOf(':') + 1;
  const values = colon > 0 ? actions : resources.map((resource) => `${resource}:`);
  const fitting = startingWith(typed.slice(colon), values);
  return { head: head + typed.slice(0, colon), choices: textChoices(fitting), isOpen: colon === 0 };
}

function startingWith(typed: string, values: readonly string[]): string[] {
  return values.filter((value) => value.startsWith(typed));
}

function textChoices(texts: readonly string[]): Choice[] {
  return texts.map((text) => ({ text }));
}
