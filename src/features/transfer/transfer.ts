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

/** How keys are imported. */
export interface ImportKeysOptions {
  /** Only check whether they can be. */
  dryRun?: boolean;
  /** Is told how many keys are imported. */
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
   * Imports keys from JSON lines, for the operator. All lines are checked first: if one of them cannot be imported,
   * none is. Keys are written some hundred at a time. If that ends early, the same import goes on, as lines whose keys
   * are there are unchanged. With `dryRun` it only checks them. The report has the outcome of each line.
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
   * Like `import`, where there may be more lines than fit in memory.
   * @param use what is done with the outcome, whose lines can be read until then
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
