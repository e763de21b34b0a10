import * as Flags from '@oclif/core/flags';
import { KeysError } from '../../keys/errors.ts';
import { isCursor } from '../../keys/list.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../../keys/page.ts';
import { printable } from '../../keys/text.ts';
import { readNumber } from './key-flags.ts';

/** How many of something to show. */
export function limitFlag(plural: string) {
  return Flags.string({
    description: `Number of ${plural} to show, up to ${MAX_PAGE_SIZE}. Default: ${DEFAULT_PAGE_SIZE}.`,
    helpValue: '<number>',
  });
}

/** Reads the value of `--limit`. @throws KeysError INPUT_INVALID */
export function readLimit(text: string | undefined, plural: string): number | undefined {
  const limit = readNumber(text, '--limit');
  if (limit === undefined || (limit >= 1 && limit <= MAX_PAGE_SIZE)) return limit;
  throw new KeysError('INPUT_INVALID', `--limit is ${limit}; a page has 1 to ${MAX_PAGE_SIZE} ${plural}.`);
}

/** Reads the value of `--after`. @throws KeysError INPUT_INVALID */
export function readAfter(text: string | undefined): string | undefined {
  if (text === undefined || isCursor(text)) return text;
  const remedy = 'Pass the one that the previous page ended with: "next" in JSON.';
  throw new KeysError('INPUT_INVALID', `--after is "${printable(text)}", which is no cursor of this list. ${remedy}`);
}
