import {
  defaultExpiry,
  type ExpiryBounds,
  type ExpiryChoice,
  expiresAtOf,
  expiryChoiceIn,
} from '../../parts/expiry-field.tsx';
import { type ChosenGrants, chosenIn, grantsInputOf } from '../../parts/grants.ts';

/** A key that is to be created, as a form has it. */
export interface Draft extends ChosenGrants, ExpiryChoice {
  readonly name: string;
  readonly description: string;
  /** Limits with commas between them. */
  readonly limits: string;
  /** Networks with commas or spaces between them. */
  readonly networks: string;
  /** Which keys it is to replace, as they were shown; empty for none. */
  readonly replaces: string;
}

/** A key that is to have the same. */
export interface Original {
  readonly name: string;
  readonly description: string | null;
  readonly grants: readonly string[];
  readonly limits: readonly string[];
  readonly allowFrom: readonly string[] | null;
}

/** Says that a key of the name is to be replaced, before it was shown what that deletes. */
export const REPLACE = 'replace';

/** A form that nobody has filled in. */
export function emptyDraft(bounds: ExpiryBounds): Draft {
  const texts = { name: '', description: '', limits: '', networks: '', replaces: '' };
  return { ...texts, roles: [], permissions: [], ...defaultExpiry(bounds) };
}

/** A form that is filled in with what another key has, but for its name and its expiry. */
export function draftLike({ description, grants, limits, allowFrom }: Original, bounds: ExpiryBounds): Draft {
  return {
    ...emptyDraft(bounds),
    description: description ?? '',
    limits: limits.join(', '),
    networks: allowFrom?.join(', ') ?? '',
    roles: grants.filter((grant) => !grant.includes(':')),
    permissions: grants.filter((grant) => grant.includes(':')),
  };
}

/** What was filled in. */
export function draftIn(form: URLSearchParams, bounds: ExpiryBounds): Draft {
  const [name, description, limits, networks, replaces] = ['name', 'description', 'limits', 'networks', 'replaces'].map(
    (field) => form.get(field)?.trim() ?? '',
  ) as [string, string, string, string, string];
  const texts = { name, description, limits, networks, replaces };
  return { ...texts, ...chosenIn(form), ...expiryChoiceIn(form, bounds) };
}

/** The fields of a form that has this draft, but for what it replaces. */
export function fieldsOf(draft: Draft): [name: string, value: string][] {
  const { name, description, limits, networks, expiry, date } = draft;
  return [
    ...Object.entries({ name, description, limits, networks, expiry, date }),
    ...draft.roles.map((role): [string, string] => ['role', role]),
    ...draft.permissions.map((permission): [string, string] => ['permission', permission]),
  ];
}

/** The input of `createApiKey`, or what is wrong with the end. */
export function inputOf(draft: Draft, bounds: ExpiryBounds): { input: object } | { problem: string } {
  const expiry = expiresAtOf(draft, bounds);
  if ('problem' in expiry) return expiry;
  const networks = draft.networks.split(/[\s,;]+/).filter(Boolean);
  const input = {
    name: draft.name,
    ...(draft.description !== '' && { description: draft.description }),
    ...grantsInputOf(draft),
    limits: draft.limits.split(/[,;]+/).flatMap((limit) => limit.trim() || []),
    ...(networks.length > 0 && { allowFrom: networks }),
    ...expiry,
    overwrite: draft.replaces !== '',
  };
  return { input };
}
