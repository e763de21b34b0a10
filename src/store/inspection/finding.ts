import type { KeyObject } from 'node:crypto';
import { isKeysError, printable, type ProgressReport } from '../../keys/basics/index.ts';
import type { FeatureInStore } from '../port-of-store.ts';
import { differenceText, type SchemaDifference } from '../../keys/repository/index.ts';

/** The checks. Codes are stable, since scripts compare them. */
export const CHECKS = [
  'NODE',
  'ENVIRONMENT',
  'CONFIG',
  'NOTICES',
  'FEDERATION',
  'STORE',
  'ACCESS',
  'SPACE',
  'SCHEMA',
  'SETTINGS',
  'INTEGRITY',
  'AUDIT_LOG',
  'CLOCK',
  'RIGHTS',
  'EDGES',
  'PLUGINS',
] as const;
/** A check. */
export type Check = (typeof CHECKS)[number];

/** The result of a check. It is skipped if another check's result makes it impossible. */
export type FindingStatus = 'ok' | 'warning' | 'failure' | 'skipped';

/** A result of a check; one for each problem. */
export interface Finding {
  check: Check;
  status: FindingStatus;
  /** The state or the problem, with the value. */
  message: string;
  /** The remedy; null if none is needed. */
  remedy: string | null;
}

/** Options of the checks of a store. */
export interface InspectOptions {
  /** The key of the audit log, if there is one. */
  auditKey: KeyObject | undefined;
  /** In milliseconds since 1970. Read when a check is made, since others take minutes while servers keep writing. */
  clock: () => number;
  /** True if the configuration names no webhook; false if that is not known. */
  isWithoutWebhook: boolean;
  /** The patterns of the routes in observe mode. Default: none. */
  observing?: readonly string[] | undefined;
  /** The rules of token exchange. Default: none are known. */
  rules?: readonly { readonly name: string }[] | undefined;
  /** The parts of features in it. */
  features: readonly FeatureInStore[];
  /** In entries of the audit log. */
  onVerified?: ProgressReport | undefined;
}

/** The remedy for a store with an older schema. */
export const MIGRATES =
  'The next command migrates it, "svc-api apikey backup" too, and no older version opens it then.';

export function ok(check: Check, message: string): Finding {
  return { check, status: 'ok', message, remedy: null };
}

export function warning(check: Check, message: string, remedy: string): Finding {
  return { check, status: 'warning', message, remedy };
}

export function failure(check: Check, message: string, remedy: string): Finding {
  return { check, status: 'failure', message, remedy };
}

/** The findings about a schema: one for each difference from how its version creates it. */
export function schemaFindings(
  version: number,
  differences: readonly SchemaDifference[] | 'unknown',
  remedy: string,
): Finding[] {
  if (differences === 'unknown')
    return [
      ok(
        'SCHEMA',
        `The store has schema ${version}. It was not compared with what this version makes, for which this user of ` +
          'the database may create no schema: the owner of the database may.',
      ),
    ];
  if (differences.length === 0) return [ok('SCHEMA', `The store has schema ${version}, as it is made.`)];
  return differences.map((difference) => {
    const text = differenceText(difference);
    return failure('SCHEMA', `${text[0]!.toUpperCase()}${text.slice(1)}, in schema ${version}.`, remedy);
  });
}

export function skipped(checks: readonly Check[], reason: string): Finding[] {
  return checks.map((check) => ({ check, status: 'skipped', message: reason, remedy: null }));
}

/** The findings of a check, or its failure. */
export async function checked(check: Check, inspect: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await inspect();
  } catch (error) {
    return [failureBy(check, error)];
  }
}

/** The failure of a check by an error, whose text says what to do. */
export function failureBy(check: Check, error: unknown, remedy = 'See the page of its code'): Finding {
  if (!isKeysError(error)) {
    const reason = error instanceof Error ? printable(error.message, 200) : 'unknown';
    return failure(check, `It failed unexpectedly: ${reason}.`, 'Run it again with LOG_LEVEL=debug.');
  }
  return failure(check, error.message, `${remedy}, ${error.code}: docs/errors.md#${error.code.toLowerCase()}.`);
}
