import { type DocumentIssue, type DocumentPath, formatList, nearest, printable } from '../../keys/basics/index.ts';

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
   * The values of a list without duplicates, checked by `parse`: each item alone, then all valid ones together.
   * @param areTexts true if each item must be text
   */
  parsedList<Item>(
    value: unknown,
    path: DocumentPath,
    parse: (items: readonly unknown[]) => { values: readonly Item[]; issues: readonly { message: string }[] },
    areTexts = true,
  ): readonly Item[] {
    const list = this.list(value, path);
    // A valid list is parsed as a whole; only an invalid one is parsed item by item, which is slow but explains each
    // issue.
    const canParse = (item: unknown) => item !== null && (!areTexts || typeof item === 'string');
    if (this.issues.length === 0 && list.length <= MAX_AT_ONCE && list.every(canParse)) {
      const { values, issues } = parse(list);
      if (issues.length === 0) return values;
    }
    const items = list.flatMap((item, index) => {
      const at = [...path, index];
      if (this.issues.length >= MAX_ISSUES) return [];
      if (item === null)
        return this.report(at, 'An item of this list is empty. Leave it out, or give it a value.') ?? [];
      if (areTexts && this.text(item, at) === undefined) return [];
      const { values, issues } = parse([item]);
      for (const { message } of issues) this.report(at, message);
      return values;
    });
    // The issues of the items are enough for a list that has no valid ones.
    if (items.length === 0 && list.length > 0) return [];
    const { values, issues } = parse([...new Set(items)]);
    for (const { message } of issues) this.report(path, message);
    return values;
  }
}

function nameOf(path: DocumentPath): string {
  const last = path.at(-1);
  return typeof last === 'number' ? 'An item of this list' : `The field "${last}"`;
}
