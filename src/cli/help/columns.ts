import { stripVTControlCharacters } from 'node:util';
import { HelpFormatter } from '@oclif/core/help';

type Rows = Parameters<HelpFormatter['renderList']>[0];
type Options = Parameters<HelpFormatter['renderList']>[1];

/** How far a right text that stands below its left one is indented, as oclif does. */
const BELOW = 4;
/** How many lines a right text may have beside its left one, as in oclif. */
const MAX_LINES = 5;

/** Lists that stay within the width: where columns would be too narrow, the right texts go below the left ones. */
export class Columns extends HelpFormatter {
  override renderList(rows: Rows, options: Options): string {
    const left = Math.max(...rows.map(([text = '']) => stripVTControlCharacters(text).length));
    const linesOf = (text: string) => this.wrap(text, options.indentation + left + 2).split('\n').length;
    const fits = left <= this.opts.maxWidth / 2 && rows.every(([, right = '']) => linesOf(right) <= MAX_LINES);
    return super.renderList(rows, fits ? options : { ...options, multiline: true, indentation: BELOW });
  }
}
