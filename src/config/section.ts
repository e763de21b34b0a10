import { dirname, resolve } from 'node:path';
import * as v from 'valibot';
import type { DocumentIssue } from '../keys/basics/index.ts';
import type { Catalog } from '../keys/permissions/index.ts';
import type { AddedSection } from './added-section.ts';
import type { Config } from './config.ts';
import { type About, map, reads, required, type Schema } from './schema.ts';

/** The context of a section that is read. */
export interface SectionContext {
  /** The absolute path of the configuration: others are given from its folder. */
  readonly file: string;
  /** The fields of the file as they are given, by their names. */
  readonly given: Readonly<Record<string, unknown>>;
  /** The resources and roles of the host and of the file. */
  readonly catalog: Catalog;
  /** The sections before this one that nothing is wrong with. */
  readonly read: Partial<Config>;
  /** Contradictions within the sections that are read. */
  readonly issues: DocumentIssue[];
  /** The expectations of routes that do not hold. */
  readonly unmet: DocumentIssue[];
}

/** A section of the configuration: its text, and its schema. */
export interface Section extends About {
  readonly schema: (context: SectionContext) => Schema;
  /** The part of the configuration that the section becomes. */
  readonly into: (output: never) => Partial<Config>;
}

/** Sections of the configuration that a feature has. */
export interface FeatureConfig {
  /** Its part of the configuration where the file has none of its sections. */
  readonly defaults?: Partial<Config>;
  /**
   * The sections by their names in the file, those of plugins as `AddedSection`. Import them here: commands that read no
   * file do not load them.
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

/** The path of a file, which becomes absolute. */
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

/** The path of a file in a map, which leaves room for other places of a secret. */
export function fileIn(context: Pick<SectionContext, 'file'>, form: string) {
  return map({ file: required(filePath(context), 'From the folder of this file.') }, form);
}
