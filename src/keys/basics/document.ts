import { KeysError } from './errors.ts';
import { nearest } from './nearest.ts';
import { formatList, printable } from './text.ts';

/** Locates a part of a document: field names, and list indexes from 0. */
export type DocumentPath = readonly (string | number)[];

/** One problem in a document. */
export interface DocumentIssue {
  path: DocumentPath;
  /** True if the name of the field is wrong, not its value. */
  ofField?: boolean;
  /** Another place that the problem involves. */
  related?: DocumentPath;
  /** A sentence that names the value. */
  message: string;
}

/**
 * The number of issues after which items of lists are skipped: explaining each takes time, and only the first are
 * shown.
 */
const MAX_ISSUES = 1000;
/** The longest list that is first checked as a whole, as most lists are valid. */
const MAX_AT_ONCE = 100;

/** Reads the parts of a parsed document, such as YAML, and collects the problems. */
export class DocumentReader {
  readonly issues: DocumentIssue[] = [];
  /** Places of misspelled fields, which are read as the field that was meant. */
  readonly #misspelled = new Set<string>();
  /** Maps with unknown fields that resemble no known one. */
  readonly #odd = new Set<string>();

  /** All issues, except those that only follow from a misspelled field. */
  get ownIssues(): readonly DocumentIssue[] {
    const follows = (path: DocumentPath) =>
      path.some((_, depth) => this.#misspelled.has(JSON.stringify(path.slice(0, depth + 1))));
    return this.#misspelled.size === 0 ? this.issues : this.issues.filter(({ path }) => !follows(path));
  }

  report(path: DocumentPath, message: string): undefined {
    this.issues.push({ path, message });
  }

  /**
   * The fields of a map. Unknown ones are issues. A misspelled field is read as the one that was meant, so that it is
   * not reported as missing as well.
   */
  knownFields<Field extends string>(
    value: Record<string, unknown>,
    path: DocumentPath,
    fields: readonly Field[],
  ): Partial<Record<Field, unknown>> {
    const known: Record<string, unknown> = { ...value };
    for (const field of Object.keys(value)) {
      if ((fields as readonly string[]).includes(field)) continue;
      const [meant] = this.issues.length < MAX_ISSUES ? nearest(field, fields, 1) : [];
      const remedy = meant === undefined ? `The fields here are ${formatList(fields)}.` : `Did you mean "${meant}"?`;
      this.issues.push({
        path: [...path, field],
        ofField: true,
        message: `"${printable(field)}" is not a field. ${remedy}`,
      });
      if (meant === undefined) this.#odd.add(JSON.stringify(path));
      if (meant === undefined || Object.hasOwn(known, meant)) continue;
      known[meant] = value[field];
      this.#misspelled.add(JSON.stringify([...path, meant]));
    }
    return known as Partial<Record<Field, unknown>>;
  }

  /** The fields of a section of the document; undefined if it is left out or, with an issue, if it is not a map. */
  section<Field extends string>(
    value: unknown,
    name: string,
    fields: readonly Field[],
    form = `a map with fields of ${formatList(fields)}`,
  ): Partial<Record<Field, unknown>> | undefined {
    if (isRecord(value)) return this.knownFields(value, [name], fields);
    return value === undefined ? undefined : this.report([name], `The field "${name}" must be ${form}.`);
  }

  /** Reports a missing field, unless an unknown one may stand for it. */
  missing(path: DocumentPath, field: string, remedy = ''): undefined {
    if (!this.mayHaveMeant(path)) this.report(path, `The field "${field}" is missing.${remedy}`);
  }

  /** True if a map has an unknown field that may stand for any other. */
  protected mayHaveMeant(path: DocumentPath): boolean {
    return this.#odd.has(JSON.stringify(path));
  }

  /** A text; for any other value undefined, with an issue. */
  text(value: unknown, path: DocumentPath): string | undefined {
    if (typeof value === 'string') return value;
    this.report(path, `${nameOf(path)} must be text. Quote it if YAML reads it as another type.`);
    return undefined;
  }

  /** The items of a list; empty if it is left out or, with an issue, if it is not a list. */
  list(value: unknown, path: DocumentPath): readonly unknown[] {
    if (value === undefined) return [];
    if (Array.isArray(value)) return value;
    this.report(path, `${nameOf(path)} must be a list.`);
    return [];
  }

  /**
   * The values of a list of texts, without duplicates.
   * @param read the value of a text; undefined if it reported an issue
   */
  textsOf<Item>(
    value: unknown,
    path: DocumentPath,
    read: (text: string, at: DocumentPath) => Item | undefined,
  ): Item[] {
    return this.itemsOf(value, path, (item, at) => {
      const text = this.text(item, at);
      return text === undefined ? undefined : read(text, at);
    });
  }

  /**
   * The values of a list, without duplicates.
   * @param read the value of an item; undefined if it reported an issue
   */
  itemsOf<Item>(
    value: unknown,
    path: DocumentPath,
    read: (item: unknown, at: DocumentPath) => Item | undefined,
  ): Item[] {
    const items = this.list(value, path).flatMap((item, index) =>
      this.issues.length >= MAX_ISSUES ? [] : (read(item, [...path, index]) ?? []),
    );
    return [...new Set(items as Item[])];
  }

  /** The values of a list of texts, checked by `parse`: each text alone, then all valid ones together. */
  parsedList<Item extends string>(
    value: unknown,
    path: DocumentPath,
    parse: (items: readonly string[]) => { values: Item[]; issues: readonly { message: string }[] },
  ): Item[] {
    const list = this.list(value, path);
    // A valid list is parsed as a whole; only an invalid one is parsed item by item, which is slow but explains each
    // issue.
    if (this.issues.length === 0 && list.length <= MAX_AT_ONCE && list.every((item) => typeof item === 'string')) {
      const { values, issues } = parse(list);
      if (issues.length === 0) return values;
    }
    const items = this.textsOf(list, path, (item, at) => {
      const { values, issues } = parse([item]);
      for (const { message } of issues) this.report(at, message);
      return values[0];
    });
    if (items.length === 0) return [];
    const { values, issues } = parse(items);
    for (const { message } of issues) this.report(path, message);
    return values;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A path such as `keys[3].name`; the name of the document for the whole. */
function formatPath(path: DocumentPath, document: string): string {
  const text = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${printable(step)}`)).join('');
  return text.slice(1) || document;
}

function nameOf(path: DocumentPath): string {
  const last = path.at(-1);
  return typeof last === 'number' ? 'An item of this list' : `The field "${last}"`;
}

/** The error of an invalid declaration, with every problem and its location. */
export class DeclarationError extends KeysError {
  /** At least one. */
  readonly issues: readonly DocumentIssue[];

  constructor(issues: readonly DocumentIssue[]) {
    super(
      'DECLARATION_INVALID',
      issues.map(({ path, message }) => `${formatPath(path, 'declaration')}: ${message}`).join('\n'),
    );
    this.issues = issues;
  }
}
