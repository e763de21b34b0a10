import { createHash } from 'node:crypto';
import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { exclusiveFlags } from '../../../../cli/input/key-flags.ts';
import { KeyCommand } from '../../../../cli/manage/key-command.ts';
import { openTable } from '../../../../cli/output.ts';
import { csvLine } from '../../../../keys/basics/index.ts';
import { readAttestation } from '../../attestation.ts';
import { reviewOperations } from '../../operations.ts';

export default class Review extends KeyCommand {
  static override group = 'Keys';
  static override summary = 'List all API keys for a review, with their owners and permissions.';
  static override description =
    'A key without an owner has that of the nearest parent key with one. Permissions are those that the parent keys ' +
    'allow. --attest records your statement in the audit log, with the SHA-256 of what ' +
    '--csv prints.';
  static override examples = examplesOf([
    ['Review all keys in a table of a spreadsheet', '--csv > review.csv'],
    ['Attest what was reviewed', '--csv --attest "Reviewed by Ada Lovelace, 4th quarter" > review.csv'],
  ]);
  static override flags = {
    csv: Flags.boolean({ description: 'Print CSV; cells are escaped so that spreadsheets do not run formulas.' }),
    attest: Flags.string({ description: 'Statement for the audit log, in one line.', helpValue: '<text>' }),
  };

  async run(): Promise<object> {
    const { flags } = await this.parse(Review);
    const { csv, attest: text } = flags;
    if (csv && this.jsonEnabled()) throw exclusiveFlags('--csv', '--json');
    if (text !== undefined) readAttestation({ text, sha256: '0'.repeat(64), keys: 0 });
    return this.withKeys(flags, async (keys) => {
      const { CSV_HEAD, csvCells, REVIEW_COLUMNS, reviewJson } = await import('../../../../cli/views/key-view.ts');
      const { isTerminal, columns } = this.terminal;
      const table = await openTable(REVIEW_COLUMNS, { isTerminal, columns });
      const cellsOf = (key: ReturnType<typeof reviewJson>) =>
        REVIEW_COLUMNS.map((column) => (isTerminal ? column.shown?.(key) : undefined) ?? column.text(key));
      const digest = createHash('sha256');
      const all: ReturnType<typeof reviewJson>[] = [];
      let count = 0;
      const add = async (lines: string) => {
        digest.update(lines);
        if (csv) await this.write(lines);
      };
      await add(csvLine(CSV_HEAD));
      for await (const page of keys.review()) {
        const shown = page.map(reviewJson);
        count += shown.length;
        await add(shown.map((key) => csvLine(csvCells(key))).join(''));
        if (this.jsonEnabled()) all.push(...shown);
        else if (!csv && shown.length > 0) await this.write(`${table(shown.map(cellsOf))}\n`);
      }
      const sha256 = digest.digest('hex');
      if (text !== undefined) {
        await keys.of(reviewOperations).attestReview({ input: { text, sha256, keys: count } });
        await this.terminal.note(`The audit log now has your statement, with the SHA-256 of the CSV: ${sha256}`);
      }
      return this.print({ keys: all, sha256, attested: text !== undefined }, undefined);
    });
  }
}
