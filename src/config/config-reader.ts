import { dirname, resolve } from 'node:path';
import { type DocumentPath, DocumentReader, formatList, isRecord } from '../keys/basics/index.ts';
import { isCount } from './config.ts';

/** Reads the parts of the configuration, and collects what is wrong with them. */
export class ConfigReader extends DocumentReader {
  /** The absolute path of the configuration: others are given from its folder. */
  readonly #file: string;

  constructor(file: string) {
    super();
    this.#file = file;
  }

  /** A text that may be left out. */
  optionalText(value: unknown, path: DocumentPath): string | undefined {
    return value === undefined ? undefined : this.text(value, path);
  }

  /** A text that may not be left out. @param remedy behind what says that it is missing */
  requiredText(value: unknown, path: DocumentPath, remedy?: string): string | undefined {
    return value === undefined ? this.missing(path.slice(0, -1), lastOf(path), remedy) : this.text(value, path);
  }

  /** Whether a field is true, which may be left out. */
  isTrue(value: unknown, path: DocumentPath): boolean {
    if (value !== undefined && typeof value !== 'boolean')
      this.report(path, `The field "${lastOf(path)}" must be true or false.`);
    return value === true;
  }

  /** Whether a field has the only value that it may have, unless it is left out. */
  isOnly(value: unknown, path: DocumentPath, only: string | true): boolean {
    if (value !== undefined && value !== only)
      this.report(path, `The field "${lastOf(path)}" must be ${only}, or left out.`);
    return value === only;
  }

  /** A whole number from 1 to the most. */
  count(value: unknown, path: DocumentPath, most: number): number | undefined {
    if (isCount(value, most)) return value;
    return this.report(path, `The field "${lastOf(path)}" must be a whole number from 1 to ${most}.`);
  }

  /** One of some words, which may be left out. */
  oneOf<Word extends string>(value: unknown, path: DocumentPath, words: readonly Word[]): Word | undefined {
    const word = words.find((each) => each === value);
    if (value === undefined || word !== undefined) return word;
    return this.report(path, `The field "${lastOf(path)}" must be ${formatList(words, 'or')}.`);
  }

  /** The absolute path of a file. */
  filePath(value: unknown, path: DocumentPath): string | undefined {
    const text = this.requiredText(value, path);
    if (text === '' || text?.includes('\0'))
      return this.report(path, `The field "${lastOf(path)}" must be the path of a file.`);
    return text === undefined ? undefined : resolve(dirname(this.#file), text);
  }

  /** The absolute path in `{ file: … }`. @param form what to say of anything else */
  fileIn(value: unknown, path: DocumentPath, form: string): string | undefined {
    if (value === undefined) return this.missing(path.slice(0, -1), lastOf(path));
    if (!isRecord(value)) return this.report(path, form);
    return this.filePath(this.knownFields(value, path, ['file']).file, [...path, 'file']);
  }

  /** The first of some items: more than the most are an issue. */
  firstOf<Item>(items: readonly Item[], path: DocumentPath, most: number, what = lastOf(path)): readonly Item[] {
    if (items.length > most) this.report(path, `There are ${items.length} ${what}; at most ${most} are allowed.`);
    return items.slice(0, most);
  }

  /** Reports an empty list. */
  refuseEmpty(value: unknown, path: DocumentPath, message: string): void {
    if (Array.isArray(value) && value.length === 0) this.report(path, message);
  }
}

function lastOf(path: DocumentPath): string {
  return String(path.at(-1));
}
