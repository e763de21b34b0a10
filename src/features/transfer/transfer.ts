import {
  aFunction,
  checkOptions,
  orUndefined,
  type ProgressReport,
  required,
  yesOrNo,
} from '../../keys/basics/index.ts';
import type { Parts } from '../../keys/changes/index.ts';
import { type ExportedPage, exportKeys, type ExportOptions } from './export.ts';
import { checkImport, importKeys, type ImportOutcome, type ImportReport, IMPORTS } from './import.ts';
import { readImport } from './read-import.ts';

/** Options of an import. */
export interface ImportKeysOptions {
  /** Only check whether they can be. */
  dryRun?: boolean;
  /** Called with the number of keys imported so far. */
  onProgress?: ProgressReport | undefined;
}

/** All keys at once, out of a store and into it. */
export class Transfer {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * All keys page by page, for the operator, as they can be imported again.
   * @throws KeysError OPTION_INVALID, STORE_…
   */
  export(options: ExportOptions): AsyncGenerator<ExportedPage> {
    checkOptions<ExportOptions>('keys.transfer.export', options, { withDigests: required(yesOrNo) });
    return exportKeys(this.#options.repository, options, this.#options.clock());
  }

  /**
   * Imports keys from JSON lines, for the operator. Checks all lines first, and imports none if one of them is invalid.
   * Writes some hundred keys at a time. After an interruption, the same import continues, because lines with existing
   * keys count as unchanged. With `dryRun` it only checks. The report has the outcome of each line.
   * @throws KeysError STORE_…; what reading the input throws
   */
  async import(input: AsyncIterable<Uint8Array>, options: ImportKeysOptions = {}): Promise<ImportReport> {
    checkOptions<ImportKeysOptions>('keys.transfer.import', options, {
      dryRun: yesOrNo,
      onProgress: orUndefined(aFunction()),
    });
    return this.importTo(input, options, ({ imported, unchanged, failed, lines }) => ({
      imported,
      unchanged,
      failed,
      lines: [...lines()],
    }));
  }

  /**
   * Like `import`, for more lines than fit in memory.
   * @param use receives the outcome, whose lines can be read until it returns
   * @throws KeysError STORE_…; what reading the input and `use` throw
   */
  async importTo<Result>(
    input: AsyncIterable<Uint8Array>,
    { dryRun = false, onProgress }: ImportKeysOptions,
    use: (outcome: ImportOutcome) => Result | Promise<Result>,
  ): Promise<Result> {
    const { repository } = this.#options;
    const options = { ...this.#options, now: this.#options.clock(), onProgress };
    const spool = await repository.port(IMPORTS).open();
    try {
      for await (const lines of readImport(input, options)) spool.add(lines);
      spool.complete();
      return await use(await (dryRun ? checkImport(repository, spool, options) : importKeys(spool, options)));
    } finally {
      spool.close();
    }
  }
}
