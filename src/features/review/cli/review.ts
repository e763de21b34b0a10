import { createHash } from 'node:crypto';
import { CliError } from '../../../cli/errors.ts';
import { exclusiveFlags } from '../../../cli/input/key-flags.ts';
import { openTable } from '../../../cli/output.ts';
import type { RunningCommand } from '../../../feature.ts';
import { csvLine } from '../../../keys/basics/index.ts';
import { readAttestation } from '../attestation.ts';
import { reviewList, reviewOperations } from '../operations.ts';
import type { ReviewedPage } from '../reviewed-keys.ts';
import { CSV_HEAD, csvCells, REVIEW_COLUMNS, reviewJson } from './review-view.ts';

const OWN_FLAGS = new Set(['review', 'csv', 'attest']);

/** Prints all keys for a review, and records a statement about them. */
export async function runReview(command: RunningCommand): Promise<object> {
  const { isJson, terminal } = command;
  const { csv = false, attest } = readFlags(command);
  return command.withKeys(async (keys) => {
    const { isTerminal, columns } = terminal;
    const table = await openTable(REVIEW_COLUMNS, { isTerminal, columns });
    const cellsOf = (key: ReturnType<typeof reviewJson>) =>
      REVIEW_COLUMNS.map((column) => (isTerminal ? column.shown?.(key) : undefined) ?? column.text(key));
    const digest = createHash('sha256');
    const all: ReturnType<typeof reviewJson>[] = [];
    let count = 0;
    const add = async (lines: string) => {
      digest.update(lines);
      if (csv) await command.write(lines);
    };
    await add(csvLine(CSV_HEAD));
    for (let after: string | null = null, isLast = false; !isLast;) {
      const page: ReviewedPage = await keys.of(reviewList).reviewedKeys({ after });
      [after, isLast] = [page.next, page.next === null];
      const shown = page.keys.map(reviewJson);
      count += shown.length;
      await add(shown.map((key) => csvLine(csvCells(key))).join(''));
      if (isJson) all.push(...shown);
      else if (!csv && shown.length > 0) await command.write(`${table(shown.map(cellsOf))}\n`);
    }
    const sha256 = digest.digest('hex');
    if (attest !== undefined) {
      await keys.of(reviewOperations).attestReview({ input: { text: attest, sha256, keys: count } });
      await terminal.note(`The audit log now has your statement, with the SHA-256 of the CSV: ${sha256}`);
    }
    return command.print({ keys: all, sha256, attested: attest !== undefined }, undefined);
  });
}

/** @throws CliError USAGE; KeysError INPUT_INVALID */
function readFlags({ flags, isJson }: RunningCommand): { csv?: boolean; attest?: string } {
  const { review, csv, attest } = flags as { review?: boolean; csv?: boolean; attest?: string };
  if (!review) throw new CliError('USAGE', `${csv ? '--csv' : '--attest'} is for a review. Pass --review as well.`);
  const other = Object.keys(flags).find((flag) => !OWN_FLAGS.has(flag));
  if (other !== undefined)
    throw new CliError('USAGE', `A review has all keys, so --${other} cannot be used with it. Leave one out.`);
  if (csv && isJson) throw exclusiveFlags('--csv', '--json');
  if (attest !== undefined) readAttestation({ text: attest, sha256: '0'.repeat(64), keys: 0 });
  return { ...(csv && { csv }), ...(attest !== undefined && { attest }) };
}
