import { hash } from 'node:crypto';
import { expiryIn, validateExpiry } from '../../../keys/key/index.ts';
import { type ChosenGrants, chosenIn, grantsInputOf, permissionsOf } from '../../parts/grants.ts';
import type { ShownKey } from './shown-key.ts';

/** The fields of a key that can be edited, as a form has them. */
export interface EditedKey {
  readonly name: string;
  readonly description: string;
  readonly expires: string;
  readonly limits: string;
  readonly allowFrom: string;
  readonly grants: ChosenGrants;
}

/** The fields as they are. */
export function editedFrom(key: ShownKey): EditedKey {
  return {
    name: key.name,
    description: key.description ?? '',
    expires: key.expiresAt ?? '',
    limits: key.limits.join(', '),
    allowFrom: (key.allowFrom ?? []).join(', '),
    grants: { roles: key.roles, permissions: permissionsOf(key.permissions) },
  };
}

/** The fields as a form has them. */
export function editedIn(form: URLSearchParams): EditedKey {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  return {
    name: text('name'),
    description: text('description'),
    expires: text('expires'),
    limits: text('limits'),
    allowFrom: text('allowFrom'),
    grants: chosenIn(form),
  };
}

/** Tells states of a key apart: a form that was made of another one would undo what somebody else has done. */
export function versionOf(key: ShownKey): string {
  return hash('sha256', JSON.stringify([editedFrom(key), key.unknownGrants])).slice(0, 16);
}

/** What is wrong with a time that cannot even be asked for, by the names of fields. @param now in ms since 1970 */
export function problemsIn({ expires }: EditedKey, now: number): Map<string, string> {
  const issues = expires === '' ? [] : validateExpiry(expiryIn(expires), now);
  return new Map(issues.map(({ message }) => ['expires', message]));
}

/** The fields that differ, as `UpdateApiKeyInput` takes them. */
export function changesFrom(before: EditedKey, after: EditedKey): object {
  const isSame = (one: readonly string[], other: readonly string[]) =>
    one.toSorted().join() === other.toSorted().join();
  const limits = itemsOf(after.limits);
  const networks = itemsOf(after.allowFrom);
  const { roles, permissions } = grantsInputOf(after.grants);
  return {
    ...(after.name !== before.name && { name: after.name }),
    ...(after.description !== before.description && { description: after.description || null }),
    ...(after.expires !== before.expires && (after.expires === '' ? { expiresAt: null } : expiryIn(after.expires))),
    ...(!isSame(limits, itemsOf(before.limits)) && { limits }),
    ...(!isSame(networks, itemsOf(before.allowFrom)) && { allowFrom: networks.length > 0 ? networks : null }),
    ...(!isSame(after.grants.roles, before.grants.roles) && { roles }),
    ...(!isSame(after.grants.permissions, before.grants.permissions) && { permissions }),
  };
}

function itemsOf(text: string): string[] {
  return text.split(/[\s,;]+/).filter(Boolean);
}
