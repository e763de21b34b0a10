import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { printable } from '../../keys/basics/index.ts';
import { presentError } from '../errors.ts';
import { wrapped } from '../wrapped.ts';
import { processTerminal } from '../terminal.ts';
import { cancelled, type Option, type Prompts } from './prompt.ts';

const SEVERAL = 'Numbers, separated by commas';

/** Questions in lines, with numbered choices. Only text is written, and nothing is redrawn. */
export const PLAIN_PROMPTS: Prompts = {
  input: ({ message, validate }) =>
    answerTo(`${message}: `, (text): Answer<string> => {
      const verdict = validate?.(text) ?? true;
      return verdict === true ? { value: text } : { problem: verdict };
    }),

  secret: (message) => lineAfter(`${message} (not shown): `, true),

  confirm: (message) =>
    answerTo(`${message} (y/N) `, (text): Answer<boolean> => {
      if (/^(n|no|)$/i.test(text.trim())) return { value: false };
      return /^(y|yes)$/i.test(text.trim()) ? { value: true } : { problem: 'Answer y for yes, or n for no.' };
    }),

  select: ({ message, choices }) => {
    print('', message);
    list(choices);
    return answerTo('Number: ', (text) => parseOne(choices, text.trim()));
  },

  checkbox: ({ message, choices }) => {
    print('', message);
    list(choices);
    const checked = choices.flatMap(({ checked: isChecked }, index) => (isChecked ? [index + 1] : [])).join(', ');
    const empty = checked === '' ? 'nothing for none' : `nothing for ${checked}, 0 for none`;
    return answerTo(`${SEVERAL}; ${empty}: `, (text) =>
      text.trim() === '0' ? { value: [] } : parseSeveral(choices, text.trim() || checked),
    );
  },

  search: ({ message, source }) => {
    print('', message);
    return searchThrough(
      'Number; nothing for all',
      source(),
      async (term) => source(term),
      (choices, text) => (text === '' ? undefined : parseOne(choices, text)),
    );
  },

  searchMany: ({ message, found, search }) => {
    print('', message);
    const toChoices = ({ choices, hasMore }: typeof found) => {
      if (hasMore) print('', 'More match: search for them.');
      return choices.map((choice) => ({ name: `${choice.name} (${choice.details})`, value: choice }));
    };
    const find = async (term: string) => toChoices(await search(term));
    return searchThrough(`${SEVERAL}; nothing for none`, toChoices(found), find, parseSeveral);
  },
};

type Answer<Value> = { value: Value } | { problem: string };

/** Asks until an answer is valid. */
async function answerTo<Value>(question: string, read: (text: string) => Answer<Value>): Promise<Value> {
  for (;;) {
    const answer = read(await lineAfter(question));
    if ('value' in answer) return answer.value;
    print('', answer.problem);
  }
}

/**
 * Lists choices, and asks for their numbers. Any other text searches for other choices.
 * @param read undefined for a text that shows the first choices again
 */
async function searchThrough<Value, Chosen>(
  hint: string,
  first: readonly Option<Value>[],
  find: (term: string) => Promise<readonly Option<Value>[]>,
  read: (choices: readonly Option<Value>[], text: string) => Answer<Chosen> | undefined,
): Promise<Chosen> {
  let choices = first;
  list(choices);
  for (;;) {
    const text = (await lineAfter(`${hint}; or a text to search for: `)).trim();
    if (/[^\d\s,]/.test(text)) {
      try {
        choices = await find(text);
        list(choices);
      } catch (error) {
        print('', presentError(error).message);
      }
      continue;
    }
    const answer = read(choices, text);
    if (!answer) {
      choices = first;
      list(choices);
      continue;
    }
    if ('value' in answer) return answer.value;
    print('', answer.problem);
  }
}

function parseOne<Value>(choices: readonly Option<Value>[], text: string): Answer<Value> {
  const choice = /^\d{1,6}$/.test(text) ? choices[Number(text) - 1] : undefined;
  if (choice) return { value: choice.value };
  const range = choices.length > 0 ? `Type a number from 1 to ${choices.length}.` : 'There is nothing to choose.';
  return { problem: text === '' ? range : `${printable(text)} is not in the list. ${range}` };
}

function parseSeveral<Value>(choices: readonly Option<Value>[], text: string): Answer<Value[]> {
  const chosen = text.split(/[\s,]+/).filter((number) => number !== '');
  const answers = chosen.map((number) => parseOne(choices, number));
  const values = answers.flatMap((answer) => ('value' in answer ? [answer.value] : []));
  return answers.find((answer) => 'problem' in answer) ?? { value: [...new Set(values)] };
}

function list(choices: readonly Option<unknown>[]): void {
  const width = String(choices.length).length;
  for (const [index, { name, description }] of choices.entries())
    print(`  ${String(index + 1).padStart(width)}. `, description === undefined ? name : `${name}: ${description}`);
  if (choices.length === 0) print('', 'Nothing matches.');
}

function print(label: string, text: string): void {
  process.stderr.write(`${wrapped(label, text, processTerminal.errorColumns)}\n`);
}

/** Asks for a line, which the terminal itself edits and echoes. @throws CliError CANCELLED */
function lineAfter(question: string, isSecret = false): Promise<string> {
  return new Promise((resolve, reject) => {
    // Without this output, readline would echo a secret while editing it.
    const output = isSecret ? new Writable({ write: (_chunk, _encoding, done) => done() }) : undefined;
    const lines = createInterface({ input: process.stdin, ...(output && { output }), terminal: isSecret });
    const settle = (line?: string) => {
      process.off('SIGINT', cancel);
      lines.off('close', cancel).close();
      if (line === undefined || isSecret) process.stderr.write('\n');
      if (line === undefined) reject(cancelled());
      else resolve(line);
    };
    const cancel = () => settle();
    // The end of the input is not reported again.
    if (process.stdin.readableEnded) return settle();
    process.on('SIGINT', cancel);
    lines.on('SIGINT', cancel).on('close', cancel).once('line', settle);
    process.stderr.write(`${wrapped('', question.trimEnd(), processTerminal.errorColumns)} `);
  });
}
