import { type DocumentIssue, printable } from '../keys/basics/index.ts';
import { invalidFeature } from '../keys/added/index.ts';
import type { About } from './schema.ts';

/**
 * A schema from any library that implements [Standard Schema](https://standardschema.dev), such as valibot or zod.
 * Editors get its JSON Schema if the library also implements
 * [Standard JSON Schema](https://standardschema.dev/json-schema).
 */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult | Promise<StandardResult>;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Readonly<Record<string, unknown>>;
    };
  };
}

/** The output of a schema, or the issues with a value, in the form of Standard Schema. */
export type StandardResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** An issue with a value, and its path in the value. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A section of a plugin. Its value is the output of the schema for the value in the file. */
export interface AddedSection extends About {
  readonly schema: StandardSchema;
}

/** @throws KeysError FEATURE_INVALID */
export function checkAddedSection(feature: string, name: string, given: unknown): void {
  const { description, schema } = (given ?? {}) as Partial<AddedSection>;
  const problem =
    typeof description !== 'string'
      ? 'needs a "description", a sentence'
      : typeof schema?.['~standard']?.validate !== 'function'
        ? 'needs a "schema" of a library that implements Standard Schema, such as valibot or zod'
        : undefined;
  if (problem !== undefined) throw invalidFeature(feature, `Its section "${printable(name)}" ${problem}.`);
}

/** Reads the value of a section of a plugin. @throws KeysError FEATURE_INVALID if its schema throws */
export async function readAddedSection(
  feature: string,
  name: string,
  { schema, value }: { schema: StandardSchema; value: unknown },
): Promise<{ output: unknown } | { issues: DocumentIssue[] }> {
  try {
    const result = await schema['~standard'].validate(value);
    if (!result.issues) return { output: result.value };
    return { issues: result.issues.map((issue) => locatedIn(name, issue)) };
  } catch (error) {
    const problem = `The schema of its section "${name}" failed: ${printable(String(error))}`;
    throw invalidFeature(feature, problem, error);
  }
}

function locatedIn(name: string, { message, path: steps = [] }: StandardIssue): DocumentIssue {
  const keys = steps.map((step) => (typeof step === 'object' ? step.key : step));
  const path = [name, ...keys.map((key) => (typeof key === 'symbol' ? String(key) : key))];
  // The form in which valibot reports unknown fields.
  const ofField = (steps.at(-1) as { origin?: unknown } | undefined)?.origin === 'key';
  return { path, ...(ofField && { ofField }), message: `"${printable(path.join('.'))}": ${printable(message, 500)}` };
}
