import { KeysError } from './errors.ts';
import { nearest } from './nearest.ts';
import { formatList, printable } from './text.ts';

/** Locates a part of a document: field names, and list indexes from 0. */
export type DocumentPath = readonly (string | number)[];

/** One problem in a document. */
export interface DocumentIssue {
  /** Where it is. */
  path: DocumentPath;
  /** Whether the field itself is wrong, not its value. */
  ofField?: boolean;
  /** Another place that it is about. */
  related?: DocumentPath;
  /** A sentence that names the value. */
  message: string;
}

/** After how many issues the items of lists are skipped: what explains one takes time, and the first are shown. */
const MAX_ISSUES = 1000;
/** How long a list is that is read as a whole, in the hope that nothing is wrong with it. */
const MAX_AT_ONCE = 100;

/** Reads the parts of a parsed document, such as YAML, and collects what is wrong with them. */
export class DocumentReader {
  readonly issues: DocumentIssue[] = [];
  /** Where a field is read by the name that was meant. */
  readonly #misspelled = new Set<string>();
  /** The maps with fields of which nobody knows what was meant. */
  readonly #odd = new Set<string>();

  /** All issues but those that follow from a misspelled field. */
  get ownIssues(): readonly DocumentIssue[] {
    const follows = (path: DocumentPath) =>
      path.some((_, depth) => this.#misspelled.has(JSON.stringify(path.slice(0, depth + 1))));
    return this.#misspelled.size === 0 ? this.issues : this.issues.filter(({ path }) => !follows(path));
  }

  report(path: DocumentPath, message: string): undefined {
    this.issues.push({ path, message });
  }

  /**
   * The fields of a map, of which all others are issues. A misspelled one is read as the one that was meant, which then
   * is not missing as well.
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

  /** The fields of a section of the document; undefined if it is left out, or is not a map, which is an issue. */
  section<Field extends string>(
    value: unknown,
    name: string,
    fields: readonly Field[],
    form = `a map with fields of ${formatList(fields)}`,
  ): Partial<Record<Field, unknown>> | undefined {
    if (isRecord(value)) return this.knownFields(value, [name], fields);
    return value === undefined ? undefined : this.report([name], `The field "${name}" must be ${form}.`);
  }

  /** Reports that a map lacks a field, unless an unknown one may stand for it. */
  missing(path: DocumentPath, field: string, remedy = ''): undefined {
    if (!this.mayHaveMeant(path)) this.report(path, `The field "${field}" is missing.${remedy}`);
  }

  /** Whether a map has an unknown field that may stand for any. */
  protected mayHaveMeant(path: DocumentPath): boolean {
    return this.#odd.has(JSON.stringify(path));
  }

  /** A text; undefined, and an issue, if it is none. */
  text(value: unknown, path: DocumentPath): string | undefined {
    if (typeof value === 'string') return value;
    this.report(path, `${nameOf(path)} must be text. Quote it if YAML reads it as another type.`);
    return undefined;
  }

  /** The items of a list, none if it is left out; none, and an issue, if it is not a list. */
  list(value: unknown, path: DocumentPath): readonly unknown[] {
    if (value === undefined) return [];
    if (Array.isArray(value)) return value;
    this.report(path, `${nameOf(path)} must be a list.`);
    return [];
  }

  /** What the texts of a list mean, each once. @param read what one means; undefined once it is reported as an issue */
  textsOf<Item>(
    value: unknown,
    path: DocumentPath,
    read: (text: string, at: DocumentPath) => Item | undefined,
  ): Item[] {
    const items = this.list(value, path).flatMap((item, index) => {
      if (this.issues.length >= MAX_ISSUES) return [];
      const at = [...path, index];
      const text = this.text(item, at);
      return (text === undefined ? undefined : read(text, at)) ?? [];
    });
    return [...new Set(items as Item[])];
  }

  /** What a list of texts means: `parse` reads each by itself, and then all that are right. */
  parsedList<Item extends string>(
    value: unknown,
    path: DocumentPath,
    parse: (items: readonly string[]) => { values: Item[]; issues: readonly { message: string }[] },
  ): Item[] {
    const list = this.list(value, path);
    // Where nothing is wrong, once is enough; where much is, it takes time to say what.
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

/** Whether a value is a map of fields. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `keys[3].name`; the name of the document for all of it. */
function formatPath(path: DocumentPath, document: string): string {
  const text = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${printable(step)}`)).join('');
  return text.slice(1) || document;
}

function nameOf(path: DocumentPath): string {
  const last = path.at(-1);
  return typeof last === 'number' ? 'An item of this list' : `The field "${last}"`;
}

/** An error of an invalid declaration, which lists every problem with its location. */
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
