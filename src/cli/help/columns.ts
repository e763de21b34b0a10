import { stripVTControlCharacters } from 'node:util';
import { HelpFormatter } from '@oclif/core/help';
import type { Config, HelpOptions } from '@oclif/core/interfaces';

import { processTerminal } from '../terminal.ts';

type Rows = Parameters<HelpFormatter['renderList']>[0];
type Options = Parameters<HelpFormatter['renderList']>[1];

/** The least width of the help, as oclif has it. */
const MIN_WIDTH = 40;
/** How far a right text that stands below its left one is indented, as oclif does. */
const BELOW = 4;

/** Lists that stay within the width: where columns would be too narrow, the right texts go below the left ones. */
export class Columns extends HelpFormatter {
  constructor(config: Config, options?: Partial<HelpOptions>) {
    super(config, { ...widthOf(process.env), ...options });
    this.render = renderTemplates(this.render);
  }

  override renderList(rows: Rows, options: Options): string {
    const below = { ...options, multiline: true, indentation: BELOW };
    const widest = Math.max(...rows.map(([left = '']) => stripVTControlCharacters(left).length));
    if (widest > this.opts.maxWidth / 2) return super.renderList(rows, below);
    const list = super.renderList(rows, options);
    // oclif has put them below itself, but indents them further than it wraps them.
    return list.startsWith(`${rows[0]?.[0]?.trim()}\n`) ? super.renderList(rows, below) : list;
  }

  /** Most texts fit: to tell that is much faster than to wrap them. */
  override wrap(body: string, spacing = this.indentSpacing): string {
    const fits = !/[\n<]/.test(body) && body.length <= this.opts.maxWidth - spacing;
    return fits ? body.trim() : super.wrap(body, spacing);
  }
}

/** The width of the help where COLUMNS says it, and OCLIF_COLUMNS does not. oclif has it otherwise. */
export function widthOf(env: NodeJS.ProcessEnv): { maxWidth?: number } {
  const { OCLIF_COLUMNS: forHelp, COLUMNS: wanted } = env;
  return forHelp || !wanted ? {} : { maxWidth: Math.max(MIN_WIDTH, processTerminal.columns) };
}

/** Renders templates only: oclif would compile every text as one. */
export function renderTemplates(render: (text: string) => string): (text: string) => string {
  return (text) => (text.includes('<%') ? render(text) : text);
}
