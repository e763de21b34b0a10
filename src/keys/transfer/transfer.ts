import type { Parts } from '../changes/transactions.ts';
import { aFunction, checkOptions, orUndefined, required, yesOrNo } from '../options.ts';
import type { ProgressReport } from '../progress.ts';
import { type ExportedPage, exportKeys, type ExportOptions } from './export.ts';
import { checkImport, importKeys, type ImportReport } from './import.ts';
import { readImport } from './read-import.ts';

/** How keys are imported. */
export interface ImportKeysOptions {
  /** Only check whether they can be. */
  dryRun?: boolean;
  /** Is told how many keys are ready to be imported. */
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
   * Imports keys from JSON lines, for the operator: all of them, or none if one cannot be imported. With `dryRun` it
   * only checks whether they can be. The report has the outcome of each line.
   * @throws KeysError STORE_…; what reading the input throws
   */
  async import(input: AsyncIterable<Uint8Array>, options: ImportKeysOptions = {}): Promise<ImportReport> {
    checkOptions<ImportKeysOptions>('keys.transfer.import', options, {
      dryRun: yesOrNo,
      onProgress: orUndefined(aFunction()),
    });
    const { dryRun = false, onProgress } = options;
    const now = this.#options.clock();
    const lines = await readImport(input, { ...this.#options, now });
    if (dryRun) return checkImport(this.#options.repository, lines, { ...this.#options, now });
    return importKeys(lines, { ...this.#options, now, onProgress });
  }
}
