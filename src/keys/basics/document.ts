import { KeysError } from './errors.ts';
import { printable } from './text.ts';

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

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A path such as `keys[3].name`; the name of the document for the whole. */
function formatPath(path: DocumentPath, document: string): string {
  const text = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${printable(step)}`)).join('');
  return text.slice(1) || document;
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
