import type { ImportOutcome, LineReport } from '../../../../src/features/transfer/import.ts';
import { type ImportKeysOptions, Transfer } from '../../../../src/features/transfer/transfer.ts';
import type { KeysService } from '../../../../src/keys/service/service.ts';

/** The outcome of an import, with that of each line. */
export type ImportReport = Pick<ImportOutcome, 'imported' | 'unchanged' | 'failed'> & { lines: LineReport[] };

/** Imports keys. */
export function importKeys(
  keys: Pick<KeysService, 'feature'>,
  input: AsyncIterable<Uint8Array>,
  options: ImportKeysOptions = {},
): Promise<ImportReport> {
  return keys.feature(Transfer).import(input, options, ({ imported, unchanged, failed, lines }) => ({
    imported,
    unchanged,
    failed,
    lines: [...lines()],
  }));
}
