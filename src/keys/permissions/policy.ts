import { durationHint, formatDuration, formatList, printable, readDuration, UNIT_MS } from '../basics/index.ts';

/** The most permissions of a role or rule that a text names. */
export const MAX_NAMED = 5;

/** An installation's demands on its keys, as written. Omitted rules demand nothing. */
export interface PolicyRules {
  /** The longest time until a key expires, such as `90d`. It also rules out keys that never expire. */
  maxLifetime?: string;
  /** True if every key must expire. */
  requireExpiry?: boolean;
  /** The roles and permissions that keys can grant, in capital letters. Only the operator can grant others. */
  grantableByKeys?: readonly string[];
  /** The most live keys that a key can have created, from 1 to 1,000,000. */
  maxKeysPerCreator?: number;
  /** The time without use after which a key is disabled, such as `60d`; at least a day. */
  disableUnused?: string;
}

export type PolicyRule = keyof PolicyRules;

/** The policy in the form that the rules use. Durations are in milliseconds; null demands nothing. */
export interface Policy {
  readonly maxLifetime: number | null;
  readonly requireExpiry: boolean;
  /** Names of roles, and permissions. */
  readonly grantableByKeys: readonly string[] | null;
  readonly maxKeysPerCreator: number | null;
  readonly disableUnused: number | null;
}

export const POLICY_RULES = [
  'maxLifetime',
  'requireExpiry',
  'grantableByKeys',
  'maxKeysPerCreator',
  'disableUnused',
] as const satisfies readonly PolicyRule[];

/** The policy without demands. */
export const NO_POLICY: Policy = {
  maxLifetime: null,
  requireExpiry: false,
  grantableByKeys: null,
  maxKeysPerCreator: null,
  disableUnused: null,
};

/** The largest `maxKeysPerCreator`. */
export const MAX_KEYS_PER_CREATOR = 1_000_000;
/** Ten years, as for the expiry of a key. */
const MAX_MS = 3653 * UNIT_MS.d;
/** Use is checked once an hour, and recorded with a delay of seconds. */
const MIN_UNUSED_MS = UNIT_MS.d;

/** Reads rules. Whether the grants exist is not checked. */
export function readPolicy(rules: PolicyRules): { policy: Policy; issues: { rule: PolicyRule; message: string }[] } {
  const { requireExpiry = false, grantableByKeys = null, maxKeysPerCreator = null } = rules;
  const issues: { rule: PolicyRule; message: string }[] = [];
  const durationOf = (rule: 'maxLifetime' | 'disableUnused', least: number): number | null => {
    const text = rules[rule];
    const read = text === undefined ? null : readPeriod(text, least);
    if (typeof read !== 'string') return read;
    issues.push({ rule, message: read });
    return null;
  };
  const [maxLifetime, disableUnused] = [durationOf('maxLifetime', 0), durationOf('disableUnused', MIN_UNUSED_MS)];
  if (maxKeysPerCreator !== null && !isCount(maxKeysPerCreator)) {
    const message = `${maxKeysPerCreator} is not a whole number from 1 to ${MAX_KEYS_PER_CREATOR}.`;
    issues.push({ rule: 'maxKeysPerCreator', message });
  }
  return { policy: { maxLifetime, requireExpiry, grantableByKeys, maxKeysPerCreator, disableUnused }, issues };
}

/** A rule with its value, close to how it is written: `maxLifetime: 90d`. */
export function ruleText(rule: PolicyRule, { [rule]: value }: Policy): string {
  if (typeof value === 'number') return `${rule}: ${rule === 'maxKeysPerCreator' ? value : formatDuration(value)}`;
  if (value === null || typeof value === 'boolean') return `${rule}: ${value}`;
  const named = value.slice(0, MAX_NAMED);
  const more = value.length - named.length;
  return `${rule}: ${formatList([...named, ...(more > 0 ? [`${more} more`] : [])]) || 'nothing'}`;
}

/** A duration in milliseconds from a minimum to ten years, or the problem with the text. */
export function readPeriod(text: string, least: number): number | string {
  const duration = readDuration(text);
  const shown = `"${printable(text)}"`;
  if (duration === undefined) {
    const remedy = durationHint(text) ?? 'Write a number with s, m, h, d or w, such as 90d.';
    return `${shown} is not a duration. ${remedy}`;
  }
  if (duration > MAX_MS) return `${shown} is more than ten years. Choose a shorter time, or none.`;
  return duration < least ? `${shown} is too short. Choose ${formatDuration(least)} or more.` : duration;
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= MAX_KEYS_PER_CREATOR;
}
