import type { ProgressReport } from '../../keys/basics/index.ts';
import type { Parts } from '../../keys/changes/index.ts';
import { type ExportedPage, exportKeys, type ExportOptions } from './export.ts';
import { checkImport, importKeys, type ImportOutcome, IMPORTS } from './import.ts';
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

  /** All keys page by page, for the operator, as they can be imported again. @throws KeysError STORE_… */
  export(options: ExportOptions): AsyncGenerator<ExportedPage> {
    return exportKeys(this.#options.repository, options, this.#options.clock());
  }

  /**
   * Imports keys from JSON lines, for the operator. Checks all lines first, and imports none if one of them is invalid.
   * Writes some hundred keys at a time. After an interruption, the same import continues, because lines with existing
   * keys count as unchanged. With `dryRun` it only checks.
   * @param use receives the outcome, whose lines can be read until it returns: they may not fit in memory
   * @throws KeysError STORE_…; what reading the input and `use` throw
   */
  async import<Result>(
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
