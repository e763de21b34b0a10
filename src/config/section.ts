import { dirname, resolve } from 'node:path';
import * as v from 'valibot';
import type { DocumentIssue, Rule } from '../keys/basics/index.ts';
import type { Catalog } from '../keys/permissions/index.ts';
import type { AddedSection } from './added-section.ts';
import type { Config } from './config.ts';
import { type About, map, reads, required, type Schema } from './schema.ts';

/** The context for reading a section. */
export interface SectionContext {
  /** The absolute path of the configuration. Other paths are relative to its folder. */
  readonly file: string;
  /** The line of a value in the file, if that is known. */
  readonly lineOf?: ((path: readonly (string | number)[]) => number) | undefined;
  /** The fields of the file as written, by name. */
  readonly given: Readonly<Record<string, unknown>>;
  /** The resources and roles of the host and of the file. */
  readonly catalog: Catalog;
  /** The earlier sections without errors. */
  readonly read: Partial<Config>;
  /** Contradictions between the sections read so far. */
  readonly issues: DocumentIssue[];
  /** Route expectations that do not hold. */
  readonly unmet: DocumentIssue[];
}

/** A section of the configuration: its text, and its schema. */
export interface Section extends About {
  readonly schema: (context: SectionContext) => Schema;
  /** Converts the section's value to its part of the configuration. */
  readonly into: (output: never) => Partial<Config>;
}

/** A feature's sections of the configuration. */
export interface FeatureConfig {
  /** Its part of the configuration if the file has none of its sections. */
  readonly defaults?: Partial<Config>;
  /** Its fields of the configuration that are in the catalog, each with a rule for programs that pass it themselves. */
  readonly additions?: Readonly<Record<string, Rule<unknown>>>;
  /**
   * The sections by name; those of plugins as `AddedSection`. Import them here: commands that read no file do not load
   * them.
   */
  readonly sections: Readonly<Record<string, () => Promise<Section | AddedSection>>>;
}

/** Declares a section. */
export function section<Output>(
  declared: Omit<Section, 'schema' | 'into'> & {
    schema: (context: SectionContext) => Schema<Output>;
    into: (output: Output) => Partial<Config>;
  },
): Section {
  return declared;
}

/** The path of a file, made absolute. */
export function filePath({ file }: Pick<SectionContext, 'file'>) {
  const message = 'must be the path of a file.';
  return v.pipe(
    v.string(),
    v.minLength(1, message),
    reads<string, string>((path) =>
      path.includes('\0') ? { refusal: message } : { value: resolve(dirname(file), path) },
    ),
  );
}

/** The path of a file inside a map, so that other sources of a secret can be added later. */
export function fileIn(context: Pick<SectionContext, 'file'>, form: string) {
  return map({ file: required(filePath(context), 'Relative to the folder of this file.') }, form);
}
