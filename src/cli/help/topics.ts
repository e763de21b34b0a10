import type { Config } from '@oclif/core/interfaces';
import { EXIT_CODES } from '../errors.ts';
import { Columns } from './columns.ts';
import { ENVIRONMENT } from './environment.ts';

/** A page of the help that is about no command. */
export interface HelpTopic {
  summary: string;
  sections: readonly { header: string; body: string | [string, string][] }[];
}

export const HELP_TOPICS: Readonly<Record<string, HelpTopic>> = {
  environment: {
    summary: 'Environment variables, and what applies without them.',
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
    summary: 'Exit codes, and the codes of errors that lead to them.',
    sections: [
      {
        header: 'EXIT CODES',
        body: EXIT_CODES.map(({ exit, meaning, codes }) => [
          exit,
          plain(codes.length === 0 ? meaning : `${meaning} Codes: ${codes.join(', ')}.`),
        ]),
      },
      {
        header: 'CODES OF ERRORS',
        body:
          'With --json, an error is one object on stdout, with the fields "error", a text, and "code". ' +
          'Codes and exit codes stay the same from version to version; texts may change.',
      },
    ],
  },
};

/** The topic of that name, if there is one. */
export function topicNamed(name: string): HelpTopic | undefined {
  return Object.hasOwn(HELP_TOPICS, name) ? HELP_TOPICS[name] : undefined;
}

/** A topic as text, within the width. */
export function topicText({ summary, sections }: HelpTopic, config: Config): string {
  const page = new Columns(config);
  return [
    page.wrap(summary, 0),
    ...sections.map(({ header, body }) => page.section(header, typeof body === 'string' ? page.wrap(body) : body)),
  ].join('\n\n');
}

/** Text of Markdown as it is shown at a terminal. */
function plain(text: string): string {
  return text.replaceAll('`', '');
}
