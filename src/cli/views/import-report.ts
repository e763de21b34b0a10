import type { ImportReport, LineReport } from '../../keys/transfer/import.ts';
import { exitOf } from '../exit-codes.ts';
import { countOf } from './count.ts';

/** Why an import failed as a whole. */
export interface ImportFailure {
  error: string;
  /** The code of the first error. */
  code: string;
  exit: number;
}

/** Why nothing was imported, if a line failed. Invalid values decide the exit code over conflicts with the store. */
export function failureOf({ failed, lines }: ImportReport): ImportFailure | undefined {
  const codes = lines.flatMap(({ errors }) => errors.map(({ code }) => code));
  const [code] = codes;
  if (code === undefined) return undefined;
  const error = `Nothing was imported: ${failed} of ${lines.length} ${lines.length === 1 ? 'line' : 'lines'} failed.`;
  return { error, code, exit: Math.max(...new Set(codes.map(exitOf))) };
}

/** How many faults and warnings are shown: the first ones. */
const MAX_SHOWN = 100;

/** What is wrong with lines of the input, as text; with `all`, all of it, and a line for each of the others. */
export function reportText({ lines }: ImportReport, all: boolean): string | undefined {
  const texts = lines.flatMap((line) => textsOf(line, all));
  if (texts.length === 0) return undefined;
  const rest = all ? 0 : texts.length - MAX_SHOWN;
  if (rest <= 0) return texts.join('\n');
  return [...texts.slice(0, MAX_SHOWN), `${rest} more are not shown: pass --verbose to see them.`].join('\n');
}

/** The line after the report of an import that did not fail. */
export function summaryOf({ imported, lines }: ImportReport): string {
  if (lines.length === 0) return 'The input has no keys.';
  if (imported === 0)
    return `Nothing was imported: this was a dry run. ${countOf(lines.length, 'API key', 'API keys')} can be imported.`;
  return `Imported ${countOf(imported, 'API key', 'API keys')}.`;
}

function textsOf({ line, status, name, prefix, errors, warnings }: LineReport, all: boolean): string[] {
  if (status === 'failed') return errors.map(({ code, message }) => `line ${line}: ${code} ${message}`);
  const shown = `line ${line}: ${status} "${name}"${prefix === null ? '' : ` as ${prefix}`}`;
  return [...(all ? [shown] : []), ...warnings.map(({ code, message }) => `line ${line}: ${code} ${message}`)];
}
