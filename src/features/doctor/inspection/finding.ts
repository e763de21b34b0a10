import type { KeyObject } from 'node:crypto';
import { isKeysError, printable, type ProgressReport } from '../../../keys/basics/index.ts';
import type { CheckedItem, CheckedStore } from '../../../feature.ts';
import type { FeatureInStore } from '../../../store/index.ts';
import { differenceText, type SchemaDifference } from '../../../keys/repository/index.ts';

/** The core's checks. Their names are stable, because scripts compare them. */
export const CHECKS = [
  'NODE',
  'ENVIRONMENT',
  'CONFIG',
  'STORE',
  'ACCESS',
  'SPACE',
  'SCHEMA',
  'SETTINGS',
  'INTEGRITY',
  'AUDIT_LOG',
  'CLOCK',
  'RIGHTS',
  'PLUGINS',
] as const;
type Check = (typeof CHECKS)[number];

/** The outcome of a check. It is skipped if another finding prevents it. */
export type FindingStatus = 'ok' | 'warning' | 'failure' | 'skipped';

/** A finding of a check: one for each fault. */
export interface Finding {
  /** Its name: one of `CHECKS`, or of a feature. */
  check: string;
  status: FindingStatus;
  /** The state or the fault, with the value. */
  message: string;
  /** The remedy; null if nothing is wrong. */
  remedy: string | null;
  /** The checked items, such as edges. Default: none are listed. */
  items?: readonly CheckedItem[] | undefined;
  /** Applies the remedy. Only remedies that lose nothing have it. */
  fix?: (() => void) | undefined;
}

/** Options of the checks of a store. */
export interface InspectOptions {
  /** The key of the audit log, if there is one. */
  auditKey: KeyObject | undefined;
  /** In milliseconds since 1970. Read at each check: others take minutes, and servers write meanwhile. */
  clock: () => number;
  /** The features' parts of the store. */
  features: readonly FeatureInStore[];
  /** In entries of the audit log. */
  onVerified?: ProgressReport | undefined;
  /** Runs the features' checks while the store is open. Default: they are not run. */
  checkFeatures?: (store: CheckedStore) => Promise<Finding[]>;
}

/** The consequence of opening a store of an older schema. */
export const MIGRATES =
  'The next command migrates it, "svc-api apikey backup" too, and no older version opens it then.';

export function ok(check: Check, message: string): Finding {
  return { check, status: 'ok', message, remedy: null };
}

export function warning(check: Check, message: string, remedy: string, fix?: () => void): Finding {
  return { check, status: 'warning', message, remedy, fix };
}

export function failure(check: string, message: string, remedy: string): Finding {
  return { check, status: 'failure', message, remedy };
}

/** One finding for each difference between a store's schema and that of its version. */
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
  if (differences.length === 0)
    return [ok('SCHEMA', `The schema of the store is version ${version}, without other changes.`)];
  return differences.map((difference) => {
    const text = differenceText(difference);
    return failure('SCHEMA', `${text[0]!.toUpperCase()}${text.slice(1)}, in schema ${version}.`, remedy);
  });
}

export function skipped(checks: readonly Check[], reason: string): Finding[] {
  return checks.map((check) => ({ check, status: 'skipped', message: reason, remedy: null }));
}

/** The findings of a check, or its failure. */
export async function checked(check: string, inspect: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await inspect();
  } catch (error) {
    return [failureBy(check, error)];
  }
}

/** The finding for an error, whose message has the remedy. */
export function failureBy(check: string, error: unknown): Finding {
  if (!isKeysError(error)) {
    const reason = error instanceof Error ? printable(error.message, 200) : 'unknown';
    return failure(check, `It failed unexpectedly: ${reason}.`, 'Run it again with LOG_LEVEL=debug.');
  }
  return failure(
    check,
    error.message,
    `See the page of its code, ${error.code}: docs/errors.md#${error.code.toLowerCase()}.`,
  );
}
