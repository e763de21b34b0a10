import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isParserError, presentError, type PresentedError, shownText } from '../errors.ts';
import { explainParserError, type Place } from './parser-errors.ts';
import { commandText } from '../command-text.ts';
import { usageOf } from './usage.ts';
import { wrapped } from '../wrapped.ts';

/** What the user did; there is nothing to look up. */
const WITHOUT_DETAILS = new Set(['CANCELLED', 'INTERRUPTED']);

/** Where a failure is shown. */
export interface Failed extends Place {
  /** The folder of this package; undefined if it is not known. */
  root: string | undefined;
  /** The width of stderr; undefined if it is no terminal. */
  columns: number | undefined;
  /** Other lines of usage than those of the command. */
  usage?: readonly string[];
}

/** A failure as it is shown: `message` in JSON, `text` on stderr. */
export interface ShownFailure extends PresentedError {
  text: string;
}

/** Turns what a command threw into what the user sees. */
export function presentFailure(error: unknown, failed: Failed): ShownFailure {
  const presented = presentError(error);
  const message = isParserError(error) ? shownText(explainParserError(error, failed)) : presented.message;
  return { ...presented, message, text: failureText({ ...presented, message }, failed) };
}

/** The text for stderr: what went wrong, the code, and what helps with it. */
export function failureText({ code, message }: Pick<PresentedError, 'code' | 'message'>, failed: Failed): string {
  if (code === 'CANCELLED') return message;
  const error = underneath('Error: ', message.split('\n'), failed.columns);
  if (WITHOUT_DETAILS.has(code)) return error;
  return [error, `Code: ${code}`, ...(code === 'USAGE' ? usageLines(failed) : referenceLine(code, failed))].join('\n');
}

function usageLines({ id, config, columns, usage = usageOf(id, config) }: Failed): string[] {
  return [
    ...(usage.length > 0 ? [underneath('Usage: ', usage, columns)] : []),
    `See ${commandText(config, id)} --help`,
  ];
}

/** The page of the package that explains the code. */
function referenceLine(code: string, { root }: Failed): string[] {
  if (root === undefined) return [];
  return [`Reference: ${pathToFileURL(join(root, 'docs', 'errors.md')).href}#${code.toLowerCase()}`];
}

/** A label with lines, each under the other. */
function underneath(label: string, lines: readonly string[], columns: number | undefined): string {
  return lines.map((line, index) => wrapped(index === 0 ? label : ' '.repeat(label.length), line, columns)).join('\n');
}
