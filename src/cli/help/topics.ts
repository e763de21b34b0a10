import { stripVTControlCharacters } from 'node:util';
import { HelpFormatter } from '@oclif/core/help';
import type { Config, HelpOptions } from '@oclif/core/interfaces';
import { allExitCodes, codesWith } from '../error-codes.ts';
import { loadErrorCodes } from '../load-error-codes.ts';
import { processTerminal } from '../terminal.ts';
import { ENVIRONMENT } from './environment.ts';

type Rows = Parameters<HelpFormatter['renderList']>[0];
type Options = Parameters<HelpFormatter['renderList']>[1];

/** The least width of the help, as in oclif. */
const MIN_WIDTH = 40;
/** The indentation of a right text below its left one, as in oclif. */
const BELOW = 4;

/** Lists that stay within the width: if columns would be too narrow, the right texts go below the left ones. */
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
    // oclif itself has put them below, but indents them more than it allows for in wrapping.
    return list.startsWith(`${rows[0]?.[0]?.trim()}\n`) ? super.renderList(rows, below) : list;
  }

  /** Most texts fit, and testing that is much faster than wrapping. */
  override wrap(body: string, spacing = this.indentSpacing): string {
    const fits = !/[\n<]/.test(body) && body.length <= this.opts.maxWidth - spacing;
    return fits ? body.trim() : super.wrap(body, spacing);
  }
}

/** The width of the help from COLUMNS, unless OCLIF_COLUMNS is set, which oclif itself reads. */
export function widthOf(env: NodeJS.ProcessEnv): { maxWidth?: number } {
  const { OCLIF_COLUMNS: forHelp, COLUMNS: wanted } = env;
  return forHelp || !wanted ? {} : { maxWidth: Math.max(MIN_WIDTH, processTerminal.columns) };
}

/** Renders only templates: oclif would compile every text as one. */
export function renderTemplates(render: (text: string) => string): (text: string) => string {
  return (text) => (text.includes('<%') ? render(text) : text);
}

type Body = string | [string, string][];

/** A page of the help without a command. */
export interface HelpTopic {
  summary: string;
  sections: readonly { header: string; body: Body | (() => Promise<Body>) }[];
}

export const HELP_TOPICS: Readonly<Record<string, HelpTopic>> = {
  environment: {
    summary: 'Environment variables, and their defaults.',
    sections: [
      {
        header: 'ENVIRONMENT VARIABLES',
        body: ENVIRONMENT.map(({ name, meaning, otherwise }) => [
          name,
          plain(otherwise === undefined ? meaning : `${meaning} Default: ${otherwise}.`),
        ]),
      },
    ],
  },
  'exit-codes': {
    summary: 'Exit codes, and the error codes behind them.',
    sections: [
      {
        header: 'EXIT CODES',
        async body() {
          await loadErrorCodes();
          return allExitCodes().map(({ exit, meaning }) => {
            const codes = codesWith(exit);
            return [exit, plain(codes.length === 0 ? meaning : `${meaning} Codes: ${codes.join(', ')}.`)];
          });
        },
      },
      {
        header: 'ERROR CODES',
        body:
          'With --json, an error is one object on stdout, with the fields "error", a text, and "code". ' +
          'Codes and exit codes stay the same between versions; texts can change.',
      },
    ],
  },
};

export function topicNamed(name: string): HelpTopic | undefined {
  return Object.hasOwn(HELP_TOPICS, name) ? HELP_TOPICS[name] : undefined;
}

/** A topic as text, within the width. */
export async function topicText({ summary, sections }: HelpTopic, config: Config): Promise<string> {
  const page = new Columns(config);
  const parts = sections.map(async ({ header, body: given }) => {
    const body = typeof given === 'function' ? await given() : given;
    return page.section(header, typeof body === 'string' ? page.wrap(body) : body);
  });
  return [page.wrap(summary, 0), ...(await Promise.all(parts))].join('\n\n');
}

/** Markdown text for a terminal. */
function plain(text: string): string {
  return text.replaceAll('`', '');
}

export const VERSION_TOPIC: HelpTopic = {
  summary: 'Show the version of svc-api and of Node.',
  sections: [{ header: 'USAGE', body: '$ svc-api version [--json]\n$ svc-api --version\n$ svc-api -v, -V' }],
};

/** Words that our own program accepts in place of a command, and after `help`, with summaries. A host has its own. */
export function wordsBesideCommands({ name }: { name: string }, help: boolean): Map<string, string> {
  if (name !== 'svc-api') return new Map();
  const topics = Object.entries({ version: VERSION_TOPIC, ...(help && HELP_TOPICS) });
  return new Map(topics.map(([word, { summary }]) => [word, summary]));
}
