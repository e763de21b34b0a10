/** The error codes, by the part of the program that they are about. */
import { CLI_ERRORS } from './commands.ts';
import { KEY_ERRORS } from './keys.ts';
import { PROGRAM_ERRORS } from './program.ts';
import { HTTP_ERRORS, type ReplyEntry } from './replies.ts';
import { SERVER_ERRORS } from './servers.ts';
import { STORE_ERRORS } from './store.ts';
import { defineErrors, type ErrorEntry, type ErrorTable } from './table.ts';
import { VALUE_ERRORS } from './values.ts';

export * from './commands.ts';
export * from './keys.ts';
export * from './program.ts';
export * from './replies.ts';
export * from './servers.ts';
export * from './store.ts';
export * from './table.ts';
export * from './values.ts';

/** The codes of the core that a `KeysError` can carry. */
export const ERRORS = defineErrors({
  ...VALUE_ERRORS,
  ...KEY_ERRORS,
  ...STORE_ERRORS,
  ...SERVER_ERRORS,
  ...PROGRAM_ERRORS,
});

const ofCore: ErrorTable = { ...ERRORS, ...CLI_ERRORS };
const ofFeatures = new Map<string, FeatureErrorEntry>();

/** An error code of a feature. */
interface FeatureErrorEntry extends ErrorEntry {
  readonly feature: string;
  /** True for a feature of a plugin. */
  readonly isAdded: boolean;
}

/** A feature with its error codes. */
export interface FeatureOfErrors {
  readonly name: string;
  readonly errors?: ErrorTable;
}

/**
 * Adds the codes of features, once each.
 * @param isAdded true for a feature of a plugin
 * @param taken called with a code that is taken, and the name of the feature that has it, if it is one
 */
export function addErrors(
  features: readonly FeatureOfErrors[],
  isAdded: (feature: FeatureOfErrors) => boolean,
  taken: (feature: string, code: string, by: string | undefined) => Error,
): void {
  for (const feature of features) {
    const { name, errors = {} } = feature;
    for (const [code, entry] of Object.entries(errors)) {
      const { feature: other } = ofFeatures.get(code) ?? {};
      if (other === name) continue;
      if (other !== undefined || isOfCore(code)) throw taken(name, code, other);
      ofFeatures.set(code, { ...entry, feature: name, isAdded: isAdded(feature) });
    }
  }
}

function isOfCore(code: string): boolean {
  return Object.hasOwn(ofCore, code) || Object.hasOwn(HTTP_ERRORS, code);
}

/** The entry of an error code. Codes of features are known once the features are loaded. */
export function errorEntry(code: string): (ErrorEntry & Partial<FeatureErrorEntry>) | undefined {
  return ofFeatures.get(code) ?? (Object.hasOwn(ofCore, code) ? ofCore[code] : undefined);
}

/** All codes that a command can fail with. */
export function errorTable(): ErrorTable {
  return { ...ofCore, ...Object.fromEntries(ofFeatures) };
}

/** The entry of a code that a reply can carry. */
export function replyEntry(code: string): ReplyEntry | undefined {
  return Object.hasOwn(HTTP_ERRORS, code) ? HTTP_ERRORS[code as keyof typeof HTTP_ERRORS] : errorEntry(code);
}
